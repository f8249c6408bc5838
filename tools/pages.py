"""`ladder pages`: renews what the pages quote: reports of rungs broken on purpose, diffs, counters, layouts, machine code,
timelines, measured times, exhibits of the bug museum.

tools/page_blocks.py says what a page may ask for, and how.
"""

import re
from pathlib import Path

from tools import build
from tools.bench_tables import bench, ladder, sides
from tools.claims import claims
from tools.page_blocks import MachineCode, Museum, Pictures, Reports, counters, difference, layout, orders, plans, rules, study, walks
from tools.profile_tables import metrics, profiled
from tools.study_tables import order, study_times
from tools.terminal import Parser, Refusal, note, say

DOCS = build.ROOT / "docs"
README = build.ROOT / "README.md"  # its pictures are with the other pages'
ASKED = re.compile(r"^<!-- (report|diff|counters|layout|orders|timeline|loop|instructions|resources|study|museum|rules|walk|waves|walks|plans"
                   r"|bench|sides|ladder|bars|roofline|time-by-m|profile|metrics|study-times|order|claims): (.*?) -->\n", re.MULTILINE)
BLOCK = re.compile(r"\n?(?:```\w*\n(?:.*?\n)??```\n|(?:\|[^\n]*\n)+(?:\nSpread [^\n]*\n)?|!\[[^\n]*\n|(?:(?!<!-- )[^\n]*\n)*?<!-- end -->\n)", re.DOTALL)
CELL = re.compile(r"(?<=\| )(<!-- check: (.*?) -->)[^|\n]*(?= \|$)", re.MULTILINE)


def stale_pictures(folder, pictures, write):
    """The pictures beside a page that are not as they should be; rewritten if told so."""
    stale = [name for name, text in pictures.items() if not (folder / name).is_file() or (folder / name).read_text() != text]
    for name in stale if write else ():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(pictures[name])
    return stale


def renewed(text, kinds):
    """The page with its blocks made anew. A kind that answers None leaves the block that is there."""
    pieces, at = [], 0
    for comment in ASKED.finditer(text):
        old = BLOCK.match(text, comment.end())
        if not old:
            raise Refusal(f"{comment[0].strip()}: no fenced block, no table, no image and no <!-- end --> follows.")
        new = kinds[comment[1]](comment[2])
        pieces += [text[at:comment.end()], old[0] if new is None else new]
        at = old.end()
    text = "".join(pieces) + text[at:]
    return CELL.sub(lambda cell: f"{cell[1]} {kinds['check'](cell[2])}", text)


def command(arguments):
    parser = Parser(prog="ladder pages", description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", type=Path, help="a file (default: README.md and docs/*.md)")
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 when a page is out of date")
    options = parser.parse_args(arguments)
    missing = [str(page) for page in options.pages if not page.is_file()]
    if missing:
        raise Refusal(f"{', '.join(missing)}: no such file.")
    build.build(quiet=True, target="pages")
    reports, machine_code = Reports(), MachineCode()
    kinds = {"report": reports, "diff": difference, "counters": counters, "layout": layout, "orders": orders, "study": study,
             "loop": machine_code.loop, "instructions": machine_code.instructions, "resources": machine_code.resources,
             "museum": Museum(), "rules": rules, "check": reports.check, "walks": walks, "plans": plans, "bench": bench,
             "sides": sides, "ladder": ladder, "profile": profiled, "metrics": metrics, "study-times": study_times, "order": order,
             "claims": claims}
    stale = []
    try:
        for page in options.pages or [README, *sorted(DOCS.glob("*.md"))]:
            old, pictures = page.read_text(), Pictures("docs/" if page.resolve() == README else "")
            try:
                new = renewed(old, kinds | pictures.kinds())
            except Refusal as refusal:
                raise Refusal(f"{page.name}: {refusal}") from None
            if new != old:
                stale.append(page.name)
                if not options.check:
                    page.write_text(new)
            stale += stale_pictures(page.parent, pictures.pictures, write=not options.check)
    finally:
        reports.close()
    for name in stale:
        (note if options.check else say)(f"{name} {'is out of date: ./ladder pages' if options.check else 'renewed'}")
    return 1 if options.check and stale else 0
