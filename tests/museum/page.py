"""What docs/bug_museum.md says of the exhibits: `./ladder pages` puts it there (tools/page_blocks.py)."""

import difflib
import json
import re

import museum
from tools.check import RANKS, Result, Subject, merged, text_of

RECORD = museum.ROOT / "bench" / "museum_h200.json"  # of record_h200.py
CHIPS = {"h200": "H200", "b200": "B200"}
KINDS = "right", "wrong", "failed", "hung"


def block_from(lines, at):
    """The lines of the block that begins at `at`, and where the next begins."""
    indent = re.match(" *", lines[at])[0]
    end = next(i for i in range(at + 1, len(lines)) if lines[i] == indent + "}")
    return lines[at + 1:end], end + 1


def twin(text, broken):
    """The lines of the source as if it was written for one of the twins alone."""
    lines, found, at = text.splitlines(), [], 0
    is_broken = str(broken).lower()
    while at < len(lines):
        line, at = lines[at], at + 1
        if "template <bool kBroken>" in line:
            continue
        line = re.sub(r"\(kBroken \? (.+?) : (.+?)\)", r"\1" if broken else r"\2", line)
        line = re.sub(r"= kBroken \? (.+?) : (.+?);", r"= \1;" if broken else r"= \2;", line)
        line = line.replace("= kBroken;", f"= {is_broken};")
        if word := re.match(r"( *)if (?:constexpr )?\((!?)kBroken(?: (&&|\|\|) (.*?))?\) (?=\S+;|\w|\{)(.*)", line):
            indent, negated, also, condition, rest = word.groups()
            holds = broken != bool(negated)
            if condition and also == ("&&" if holds else "||"):  # the rest of the condition decides
                line = f"{indent}if ({condition}) {rest}"
            elif rest == "{":
                inner, at = block_from(lines, at - 1)
                found += [each[2:] for each in inner] if holds else []
                continue
            elif holds:
                line = indent + rest
            else:
                continue
        if broken or "// The mistake: " not in line:
            found.append(line)
    if unresolved := [line for line in found if re.search(r"\bkBroken\b", line)]:
        raise ValueError(f"page.py does not know what this becomes: {unresolved[0]}")
    return found


def numbered(text):
    """The marks of lines that are reported, with the numbers that the report gives them."""
    return "\n".join(re.sub(r"// reported(:?)$", lambda mark: f"// line {number + bool(mark[1])}{mark[1]}", line)
                     for number, line in enumerate(text.splitlines(), 1))


NUMBERED = re.compile(r" *// line \d+(:?)$")


def difference(exhibit):
    """The broken twin's lines that matter, and what the fix makes of them: around the mistake, and those that are reported."""
    broken, fixed = (twin(numbered(exhibit.text), each) for each in (True, False))
    lines, shown = [], set()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, broken, fixed, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [(" ", line) for line in broken[a:b]]
            continue
        shown |= {*range(len(lines) - 1, len(lines) + (b - a) + (d - c) + 1)}
        lines += [("-", line) for line in broken[a:b]] + [("+", NUMBERED.sub("", line)) for line in fixed[c:d]]
    for at, (_, line) in enumerate(lines):
        if mark := NUMBERED.search(line):
            end = at + bool(mark[1])
            while not re.search(r"[;{}]$", NUMBERED.sub("", lines[end][1])):
                end += 1
            shown |= {*range(at, end + 1)}
    shown = sorted(at for at in shown if lines[at][1])
    indent = min(len(re.match(" *", lines[at][1])[0]) for at in shown)
    text = []
    for before, at in zip([shown[0] - 1, *shown], shown):
        if any(lines[between][1] for between in range(before + 1, at)):
            text.append("  ...")
        text.append(f"{lines[at][0]} {lines[at][1][indent:]}")
    return text


# tile_empty[stage], __syncwarp(), a path; .release.cluster; cp.async.bulk, tcgen05.wait::ld.
CODE = re.compile(r"(?<![\w/.`])(?:[\w/]*_\w+(?:\.[a-z]\w*|\[\w+\]|\(\))*|\.[a-z]\w*(?:(?:\.|::)\w+)*"
                  r"|[a-z]\w*(?:\.[a-z]\w+|::\w+)+)(?![\w(`])")


def prose(text):
    """Words of the sources, with names and instructions set as code."""
    return CODE.sub(r"`\g<0>`", text)


def results(runs):
    """`right under earliest; wrong under latest, random:1`."""
    words = {}
    for schedule, outcome in runs.items():
        word = outcome.result.split(" (")[0]
        words.setdefault(re.sub("launch failed: (.*)", r"the launch failed with `\1`", word), []).append(schedule)
    if len(words) == 1:
        return f"{next(iter(words))} under all of {', '.join(runs)}"
    return "; ".join(f"{word} under {', '.join(schedules)}" for word, schedules in words.items())


def recorded(name):
    """(record, its entries of the exhibit by twin), without entries where nobody has run it."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"exhibits": []}
    entries = {entry["twin"]: entry for entry in record["exhibits"] if entry["exhibit"] == name}
    return record, entries if set(entries) == {"broken", "fixed"} else {}


def measured(name):
    """The line about a real chip; "" without a record."""
    record, entries = recorded(name)
    if not entries:
        return ""

    def counts(entry):
        kinds = [kind for kind in KINDS if entry[kind]]
        if len(kinds) == 1:
            return f"all {entry['runs']} runs {kinds[0]}"
        return f"of {entry['runs']} runs " + ", ".join(f"{entry[kind]} {kind}" for kind in kinds)
    words = [re.sub(r"^wrong \((.*)\)$", r"\1", entries["broken"].get("first_wrong", "")), *entries["broken"].get("errors", {})]
    first = f" ({'; '.join(filter(None, words))})" if any(words) else ""
    return f"**On a real H200**, *measured* on {record['recorded']}: broken: {counts(entries['broken'])}{first}; fixed: " \
           f"{counts(entries['fixed'])}."


def fenced(lines, language=""):
    return "\n".join([f"```{language}", *lines, "```"])


class Museum:
    """`table`, or a theme: all its exhibits. Each is run when it is first asked for."""

    def __init__(self):
        self.exhibits = museum.exhibits()
        self.ran = {}

    def runs(self, exhibit):
        if exhibit.name not in self.ran:
            self.ran[exhibit.name] = exhibit.runs("broken", museum.SCHEDULES, threads=1)
            if "uninitialised" in exhibit.names:
                self.follow_unwritten(exhibit)
        return self.ran[exhibit.name]

    def follow_unwritten(self, exhibit):
        """`./ladder check` runs it again with other contents of memory, and says whether that matters."""
        subject = Subject(exhibit.name, [str(exhibit.executable), "broken"], exhibit.environment | {"LADDER_THREADS": "1"})
        result = Result(subject, list(self.ran[exhibit.name]))
        for schedule in result.schedules:
            result.add(schedule, museum.SECONDS)
        result.follow_unwritten(museum.SECONDS)
        for schedule, outcome in self.ran[exhibit.name].items():
            outcome.findings[:] = [finding for seen_under, finding in result.found if seen_under == schedule]

    def of(self, theme):
        found = [exhibit for exhibit in self.exhibits if exhibit.fields["Theme"] == theme]
        return sorted(found, key=lambda exhibit: exhibit.chip != "h200")  # what runs on more machines first

    def table(self):
        rows = ["| exhibit | what is wrong | `./ladder check` says | right all the same, on a real chip |",
                "| --- | --- | --- | --- |"]
        for exhibit in (each for theme in museum.THEMES for each in self.of(theme)):
            _, entries = recorded(exhibit.name)
            luck = f"{entries['broken']['right']} of {entries['broken']['runs']} runs" if entries else f"not tried on a {CHIPS[exhibit.chip]}"
            cells = f"[{exhibit.name}](#{exhibit.name})", prose(exhibit.title).rstrip("."), self.told(exhibit), luck
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join(rows) + "\n"

    def told(self, exhibit):
        """Its best name and how grave that is."""
        best = exhibit.names[0]
        if exhibit.name in museum.NOT_SEEN:
            return "nothing yet"
        ranks = [finding["rank"] for outcome in self.runs(exhibit).values() for finding in outcome.findings
                 if finding["rule"] == best]
        return f"{min(ranks, key=RANKS.index).lower()}: `{best}`"

    def report(self, exhibit):
        """(schedule, lines): what `ladder check` prints under the first schedule that tells it by its best name."""
        for schedule, outcome in self.runs(exhibit).items():
            if exhibit.names[0] in outcome.names:
                texts = [text_of(one, [schedule]) for one in merged((schedule, finding) for finding in outcome.findings)]
                return schedule, "\n".join(texts).split("\n")
        raise ValueError(f"nobody says {exhibit.names[0]} of {exhibit.name}")

    def section(self, exhibit):
        fields = exhibit.fields
        parts = [f"### {exhibit.name}", f"**{prose(exhibit.title)}**", f"*Symptom.* {prose(fields['Symptom'])}",
                 f"*Why.* {prose(fields['Why'])}", fenced(difference(exhibit), "diff")]
        if exhibit.name in museum.NOT_SEEN:
            parts.append("`./ladder check` says nothing of it yet.")
        else:
            schedule, lines = self.report(exhibit)
            parts += [f"What `./ladder check` says of the broken twin, under `{schedule}`:", fenced(lines)]
        parts += [f"*Fix.* {prose(fields['Fix'])}", f"*Rule.* {prose(fields['Rule'])}.",
                  f"*The broken twin's result*, on the emulated {CHIPS[exhibit.chip]}: {results(self.runs(exhibit))}.",
                  measured(exhibit.name)]
        return "\n\n".join(filter(None, parts)) + "\n"

    def __call__(self, asked):
        if asked == "table":
            return self.table()
        return "\n" + "\n".join(self.section(exhibit) for exhibit in self.of(asked)) + "\n<!-- end -->\n"
