"""What the pages quote, block by block.

A page asks for it with a comment, and the fenced block, the table or the image that follows holds it:

    <!-- report: step01_kloop, parity never flipped, latest -->        ``` a mutant of tests/mutants/catalogue.py and
                                                                       a schedule; `..., checked` says what the hazard
                                                                       rules find, too; `..., N lines` stops after so many
    <!-- diff: step01_kloop step02_pipeline -->                        ```diff of the two blackwell.cu; of another kernel's file:
                                                                       `step07:pair`
    <!-- counters: step01_kloop step02_pipeline, 512x512x512 -->       | what they counted; also `step02_pipeline:stages-8`
    <!-- layout: 128B, 128x64, 9 lines -->                             ``` the swizzle, rows and K of a tile, and how much
                                                                       of it, in lines of 128 bytes; `..., 4 lines
                                                                       from 62` leaves out the first 62
    <!-- orders: f16, 1024 -->                                         | what other orders of summing do to the bits: type, K
    <!-- timeline: step03_warpspec, 128x256x160, random:1 -->          ![ the rung's picture, as `ladder trace` draws it, in
                                                                       pictures/ beside the page; `..., VARIANT` is another's
    <!-- loop: step04_swizzle -->                                      ``` machine code from a stage's first MMA to the next; of a
                                                                       rung's other kernels: `step07_persistent, step07_pair`
    <!-- instructions: step04_swizzle -->                              | what each of its instructions is for
    <!-- walk: 8192x8192x8192, 1 8 32 -->                              ![ D in tiles, by the wave that computes them, for tile
                                                                       rows to a group
    <!-- waves: 4096x4096x4096 256x8192x8192 -->                       ![ how full the waves are, for each tile width
    <!-- plans: NAME=4096x4096x4096 -->                                | what step07 plans for shapes
    <!-- walks: 8192x8192x8192, 1=848 8=785.6 -->                      | what a wave needs, beside times that are given
    <!-- resources: step06 step07:pair step07:tile-n=256 -->           | rungs, each perhaps with a variant: registers, shared and
                                                                       tensor memory, stages, length of the main loop
    <!-- study: 128x256x512 -->                                        | what step04's study moves, by configuration
    <!-- bench: burst -->                                         | what bench/h200.json has of a protocol: every side, us and
                                                                       of the better cuBLAS; `burst, 1x8192x8192 ...` of shapes; below, a
                                                                       sentence on the spread
    <!-- sides: h200.json, burst, step07:best, square-4096 -->        | of a file in bench/: sides over shapes, and the ratio to the
                                                                       named one; `..., SIDE SIDE` those sides only
    <!-- ladder: step04_swizzle -->                                    | a rung's sides beside the rung before, cuBLAS and the origin
    <!-- bars: square-4096, step04_swizzle -->                         ![ each side's speed as a bar, the rung's highlighted; without
                                                                       a rung, all of them
    <!-- study-times: square-4096 prefill-attn-out -->            | what bench/h200_study.json has: kernel, loads, MMAs, epilogue
    <!-- order: square-4096 decode-mlp-up -->                     | what roles and clusters gain before the swizzle, and behind it:
                                                                       bench/h200_order.json
    <!-- claims: all -->                                          | the origin's claims beside what was measured, and a verdict
    <!-- roofline: h200 -->                                            ![ what memory and tensor cores allow, and what was measured:
                                                                       bench/h200.json
    <!-- time-by-m: 8192x8192 -->                                      ![ time against M for weights N x K
    <!-- profile: step04_swizzle -->                                   | the counters of the rung and of the one before, the origin's
                                                                       and what is committed in bench/profiles
    <!-- metrics: all -->                                              | what `ladder profile` counts, and what that means
    <!-- rules: all -->, <!-- rules: faults -->                        | the hazard rules; what ends a launch
    <!-- check: step03_warpspec, no wait for tile_empty -->            inside a table's cell: what `ladder check` says
    <!-- museum: table -->                                             | the exhibits of tests/museum
    <!-- museum: clusters -->                                          all that is to be said of those of a theme, up to
                                                                       <!-- end -->
"""

import difflib
import json
import os
import re
import subprocess
import sys

from tools import bench_picture, build, instructions, lesson, plan_picture, sass, toolkit, trace_picture
from tools.check import SCHEDULES
from tools.rung import SHOWN_SCHEDULE, Case, execute, rung_and_variant
from tools.terminal import Refusal, note
from tools.timeline import VIRTUAL_TIME
from tools.trace import case_of, traced


def fenced(lines, language=""):
    return "\n".join([f"```{language}", *lines, "```", ""])


def table_row(*cells):
    return f"| {' | '.join(cells)} |"


def table(rows):
    return "".join(table_row(*row) + "\n" for row in rows)


MOST_RULES = 3  # in a cell


class Reports:
    """rung, mutant's name, schedule[, checked][, N lines]: the emulator's report, or where it has none the rung's on a wrong result."""

    def __init__(self):
        self.bench = None  # made for the first report

    def mutant(self, rung, name):
        sys.path.insert(0, str(build.ROOT / "tests" / "mutants"))
        from bench import Bench
        from catalogue import MUTANTS
        found = [mutant for mutant in MUTANTS if (mutant.rung, mutant.name) == (rung, name)]
        if not found:
            raise Refusal(f"no mutant '{name}' of {rung}: python3 tests/mutants/show.py lists them")
        self.bench = self.bench or Bench()
        return found[0]

    def __call__(self, asked):
        words = re.fullmatch(r"(\w+), (.+?), (earliest|latest|random:\d+)(, checked)?(?:, (\d+) lines)?", asked)
        if not words:
            raise Refusal(f"<!-- report: {asked} -->: expected a rung, a mutant's name, a schedule and perhaps `N lines`.")
        rung, name, schedule, checked, count = words.groups()
        mutant = self.mutant(rung, name)
        text = self.bench.run(mutant, [schedule], rules=bool(checked))[schedule].text
        lines = [line for line in text.split("\n") if line.startswith("=========")]
        if not lines:
            wrong = re.search(r"^  check .*?(?=\n  \w)", text, re.MULTILINE | re.DOTALL)
            if not wrong:
                raise Refusal(f"nothing is wrong: <!-- report: {asked} -->")
            lines = wrong[0].split("\n")
        return fenced(lines[:int(count)] if count else lines)

    def check(self, asked):
        """rung, mutant's name: the cell of a table that says what `./ladder check` finds."""
        rung, _, name = asked.partition(", ")
        mutant, told = self.mutant(rung, name), {}
        for finding in self.bench.found(mutant, SCHEDULES):
            told.setdefault(finding["rule"], finding)  # each rule once, by its gravest
        parts = [part_of_cell(finding, rung) for finding in told.values()]
        return "; ".join(parts[:MOST_RULES] + (["and more"] if len(parts) > MOST_RULES else [])) or "nothing"

    def close(self):
        if self.bench:
            self.bench.close()


BEFORE_IT_IS_DONE = ("read-too-early", "overwrite-too-early")


def part_of_cell(finding, rung):
    """`overwrite-too-early`: TMA load at 86, 87 before tcgen05.mma at 91 is done. A rule's rank stands before it where it is no
    error, and schedules behind it where not all show it."""
    def lines(*sides):
        return "at " + ", ".join(map(str, sorted({int(number) for side in sides for place in (side["where"], *side["also"])
                                                  for number in re.findall(rf"\b{rung}/\w+\.cu:(\d+)", place)})))
    text = f"{'' if finding['rank'] == 'Error' else finding['rank'].lower() + ' '}`{finding['rule']}`"
    sides = finding["sides"]
    if "report" in finding or len(sides) == 1:
        text += " " + lines(*sides)
    else:
        between, after = (" before ", " is done") if finding["rule"] in BEFORE_IT_IS_DONE else (" and ", "")
        text += ": " + between.join(f"{side['what']} {lines(side)}" for side in sides) + after
    if len(finding["schedules"]) < len(SCHEDULES):
        text += f" ({', '.join(f'`{each}`' for each in finding['schedules'])})"
    return text


def rules(asked):
    """`all`: the hazard rules; `faults`: what the machine ends a launch for. As the emulator has them."""
    names = {"all": "rules", "faults": "faults"}
    if asked not in names:
        raise Refusal(f"<!-- rules: {asked} -->: expected {' or '.join(names)}.")
    listing = subprocess.run([str(build.FOLDER / "bin" / "isa_listing"), names[asked]], check=True, stdout=subprocess.PIPE, text=True)
    if asked == "faults":
        lines = [table_row("rule", "says", "sees"), table_row(*["---"] * 3)]
        lines += [table_row(f"`{fault['id']}`", fault["title"], fault["sees"]) for fault in json.loads(listing.stdout)]
        return "\n".join(lines) + "\n"
    lines = [table_row("rule", "rank", "sees", "cannot see", "fix", "source"), table_row(*["---"] * 6)]
    for rule in json.loads(listing.stdout):
        lines.append(table_row(f"`{rule['id']}`", rule["rank"].lower(), f"{rule['title']}: {rule['sees']}", rule["misses"],
                               rule["fix"], rule["source"]))
    return "\n".join(lines) + "\n"


def difference(asked):
    """Two steps: what becomes of the first's kernel file in the second. The kernel's name and blanks do not count as changes."""
    words = re.fullmatch(r"([\w:]+) ([\w:]+)", asked)
    if not words:
        raise Refusal(f"<!-- diff: {asked} -->: expected two rungs.")
    steps = [lesson.named(name) for name in words.groups()]
    texts = [step.lines() for step in steps]
    words = [["".join(line.replace(step.kernel, "").split()) for line in text] for step, text in zip(steps, texts)]
    hunks = difflib.SequenceMatcher(None, *words, autojunk=False).get_grouped_opcodes(1)
    lines = [f"--- {steps[0].path}", f"+++ {steps[1].path}"]
    for hunk in hunks:
        a, b, c, d = hunk[0][1], hunk[-1][2], hunk[0][3], hunk[-1][4]
        lines.append(f"@@ -{a + 1},{b - a} +{c + 1},{d - c} @@")
        for tag, a, b, c, d in hunk:
            if tag == "equal":
                lines += [f" {line}".rstrip() for line in texts[1][c:d]]
            else:
                lines += [f"-{line}" for line in texts[0][a:b]] + [f"+{line}" for line in texts[1][c:d]]
    return fenced(lines, "diff")


def rows(counters):
    """What a reader is shown of a run's counters: row -> number."""
    total, warps = counters["total"], counters["by_warp"]
    shown = {
        "TMA loads": total["tma_loads"],
        "TMA stores": total["tma_stores"],
        "rows of their boxes": total["tma_box_rows"],
        "bytes read from global memory": total["bytes_from_global"],
        "bytes written to shared memory by TMA": total["bytes_into_shared"],
        "MMAs": total["mmas"],
        "commits": total["commits"],
        "loads of tensor memory": total["tmem_loads"],
        "most loads in flight, of a cluster": counters["most_loads_in_flight"],
        "most MMAs in flight, of a cluster": counters["most_mmas_in_flight"],
    }
    for row, count in (("waits that blocked", "parked_waits"), ("instructions", "instructions")):
        for warp in range(2):
            shown[f"{row}, warp {warp}"] = warps[warp][count]
        shown[f"{row}, the other warps together"] = sum(warp[count] for warp in warps[2:])
    return shown


def counters(asked):
    """Rungs, each perhaps with a variant, and a shape: a table of what they counted."""
    words = re.fullmatch(r"([\w:=,-]+(?: [\w:=,-]+)+), (\d+)x(\d+)x(\d+)", asked)
    if not words:
        raise Refusal(f"<!-- counters: {asked} -->: expected two rungs or more and a shape, as tools/page_blocks.py shows.")
    columns = {}
    for each in words[1].split():
        name, variant = rung_and_variant(each)
        outcome = execute(Case(name, *map(int, words.group(2, 3, 4)), variant=variant, schedule=SHOWN_SCHEDULE))
        if not outcome.good:
            raise Refusal(f"<!-- counters: {asked} -->: {each} ended with exit status {outcome.status}. {outcome.text.strip()}")
        columns[f"{name} {variant}".strip()] = rows(outcome.counters)
    shape = "x".join(words.group(2, 3, 4))
    table = [table_row(f"{shape}, schedule {SHOWN_SCHEDULE}", *columns), table_row("---", *["---:"] * len(columns))]
    for row in next(iter(columns.values())):
        numbers = [column[row] for column in columns.values()]
        if any(numbers):
            table.append(table_row(row, *[f"{number:,}" for number in numbers]))
    return "\n".join(table) + "\n"


def layout(asked):
    """Swizzle, rows x K, lines: where the chunks of a tile lie, by the functions that the kernels use."""
    words = re.fullmatch(r"(\w+), (\d+)x(\d+), (\d+) lines(?: from (\d+))?", asked)
    if not words:
        raise Refusal(f"<!-- layout: {asked} -->: expected a swizzle, ROWSxK and `N lines`.")
    done = subprocess.run([str(build.FOLDER / "bin" / "tile_picture"), *filter(None, words.groups())], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refusal(f"<!-- layout: {asked} -->: {done.stderr.strip()}.")
    return fenced(done.stdout.rstrip("\n").split("\n"))


def orders(asked):
    """Type, K: how many outputs keep their bits when the products are added in other ways."""
    words = re.fullmatch(r"(f16|bf16), (\d+)", asked)
    if not words:
        raise Refusal(f"<!-- orders: {asked} -->: expected f16 or bf16, and K.")
    return subprocess.run([str(build.FOLDER / "bin" / "sum_orders"), *words.groups()], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True, text=True).stdout


class Pictures:
    """Links to a page's pictures. The pictures, by name, are left to be written; names begin with `folder`, as seen from the page."""

    def __init__(self, folder=""):
        self.folder, self.pictures = folder, {}

    def kinds(self):
        drawn = {plan_picture.picture: ("walk", "waves"), bench_picture.picture: ("bars", "roofline", "time-by-m")}
        return {"timeline": self.timeline} | {kind: lambda asked, kind=kind, draw=draw: self.link(*draw(kind, asked))
                                              for draw, kinds in drawn.items() for kind in kinds}

    def link(self, file, picture, words):
        self.pictures[self.folder + file] = picture
        return f"![{words}]({self.folder}{file})\n"

    def timeline(self, asked):
        """rung, shape, schedule[, variant]"""
        words = re.fullmatch(r"(\w+), (\d+x\d+x\d+), (earliest|latest|random:\d+)(?:, ([\w=,-]+))?", asked)
        if not words:
            raise Refusal(f"<!-- timeline: {asked} -->: expected a rung, MxNxK, a schedule and perhaps a variant.")
        rung, shape, schedule, variant = words.groups()
        name = build.named(rung)
        case = case_of(name, shape, schedule, variant or "")
        outcome, launch = traced(case)
        if launch is None:
            raise Refusal(f"<!-- timeline: {asked} -->: {name} ended with exit status {outcome.status}. {outcome.text.strip()}")
        file = f"pictures/{name}{'_' + re.sub('[=,]', '-', variant) if variant else ''}.svg"
        return self.link(file, trace_picture.svg(case, launch.ctas[0]), f"Timeline of {name}, {shape}, schedule {schedule}; {VIRTUAL_TIME}")


class MachineCode:
    """A rung[, part of a kernel's name]: its main loop, as a listing or explained. Rungs, each perhaps with a variant: what
    they need of an SM. Where this machine cannot make what is there, it stays."""

    def __init__(self):
        self.why_not = None  # a sentence; unknown before the first is asked for

    def possible(self, rung):
        if self.why_not is None:
            self.why_not = self.obstacle(rung)
            if self.why_not:
                note(f"Machine code's listings and tables stay as they are: {self.why_not}")
        return not self.why_not

    def main_loop(self, asked, show):
        rung, _, part = asked.partition(", ")
        rung = build.named(rung)
        return show(sass.main_loop(sass.chosen(rung, part=part))) if self.possible(rung) else None

    @staticmethod
    def obstacle(rung):
        try:
            toolkit.disassembler()
        except Refusal as refusal:
            return str(refusal)
        here, recorded = sass.compiler(build.rung(rung)), json.loads(sass.RECORD.read_text())["compiler"]
        return "" if here == recorded else f"they are by the compiler {recorded}, and the one here is {here}."

    def loop(self, asked):
        return self.main_loop(asked, lambda loop: fenced(map(str, loop)))

    def instructions(self, asked):
        rows = [("instruction", "times", "what it is for"), ("---", "---:", "---")]
        return self.main_loop(asked, lambda loop: table(rows + [
            (f"`{name}`", str(count), words) for name, count, words in instructions.explained(loop)]))

    def resources(self, asked):
        wanted = [rung_and_variant(each) for each in asked.split()]
        if not wanted:
            raise Refusal("<!-- resources: -->: expected rungs, each perhaps with a variant.")
        if not self.possible(wanted[0][0]):
            return None
        table = [resources(rung, variant) for rung, variant in wanted]
        lines = [table_row("kernel", *table[0]), table_row("---", *["---:"] * len(table[0]))]
        return "\n".join(lines + [table_row(f"{rung} {variant}".strip(), *[f"{number:,}" for number in row.values()])
                                  for (rung, variant), row in zip(wanted, table)]) + "\n"


def resources(rung, variant):
    """What a variant of a rung needs of an SM: by its machine code, and by a run of one tile and one K tile."""
    case = Case(rung, 128, 128, 16, variant=variant, out_dtype="f16")
    outcome = execute(case, trace=True)
    if not outcome.good:
        raise Refusal(f"{rung} {variant}: ended with exit status {outcome.status}. {outcome.text.strip()}")
    there, name = {kernel.name: kernel for kernel in sass.kernels(build.rung(rung))}, sass.readable(outcome.counters["mangled"])
    kernel, trace = there[name], outcome.trace.decode()
    loop = sass.main_loop(kernel)
    columns = max(int(each, 16) for each in re.findall(r" tmem_alloc \S+ (\S+)", trace))
    return {"registers, 16-bit D": kernel.registers,
            "registers, f32 D": there[name.replace("f16>", "f32>")].registers,
            "static shared bytes": kernel.shared_bytes,
            "dynamic shared bytes": outcome.counters["dynamic_shared_bytes"],
            "bytes a stage": outcome.counters["total"]["bytes_into_shared"] // outcome.counters["ctas"],
            "stages": len(set(re.findall(r"^barrier \S+ (tile_full\S*)", trace, re.MULTILINE))),
            "columns of tensor memory": columns,
            "instructions per K tile": len(loop),
            "MMAs per K tile": sum(each.base == sass.MMA for each in loop)}


def study(asked):
    """A shape: what each configuration of step04's study moves, and which of its parts can run."""
    if not re.fullmatch(r"\d+x\d+x\d+", asked):
        raise Refusal(f"<!-- study: {asked} -->: expected a shape, MxNxK.")
    done = subprocess.run([str(build.FOLDER / "bin" / "swizzle_study"), "--on", "b200", "--shape", asked, "--json"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "LADDER_SCHEDULE": "latest"})
    if done.returncode:
        raise Refusal(f"<!-- study: {asked} -->: {done.stderr.strip()}")
    parts, loads = {}, {}
    for each in json.loads(done.stdout):
        configuration = each["arrangement"], each["tile_k"], each["stages"]
        parts.setdefault(configuration, []).append(each["part"])
        if each["part"] == "load":
            loads[configuration] = each
    rows = [("arrangement", "K tile", "stages", "bytes of a box row", "boxes", "box rows", "most bytes in flight", "parts"),
             ("---", *["---:"] * 6, "---")]
    for configuration, each in loads.items():
        counted = each["counters"]
        numbers = (*configuration[1:], each["row_bytes"], counted["total"]["tma_loads"], counted["total"]["tma_box_rows"],
                   counted["most_bytes_in_flight"])
        rows.append((configuration[0], *[f"{number:,}" for number in numbers], ", ".join(parts[configuration])))
    return table(rows)


def plans(asked):
    """Shapes by name: what is planned for each."""
    rows = [("shape", "M x N x K", "tile", "tiles", "waves", "tile rows to a group", "stages"), ("---", "---", "---", "---:", "---:", "---:", "---:")]
    for each in asked.split():
        name, _, shape = each.partition("=")
        told = plan_picture.plan(shape)
        tiles = told["m_tiles"] * told["n_tiles"]
        rows.append((name, shape, f"{told['tile_m']} x {told['tile_n']}", f"{tiles:,}", f"{tiles / told['clusters']:.2f}",
                     str(told["walk"]), str(told["stages"])))
    return table(rows)


def walks(asked):
    """Shape, and for each walk the time that somebody has measured: beside it what a wave needs."""
    words = re.fullmatch(r"(\S+),((?: \d+=[\d.]+)+)", asked)
    if not words:
        raise Refusal(f"<!-- walks: {asked} -->: expected MxNxK and WALK=TIME, as in 8192x8192x8192, 1=848 8=785.6.")
    rows = [("tile rows to a group", "rows of A and B that a wave needs", "*origin*, us"), ("---:", "---:", "---:")]
    for each in words[2].split():
        walk, time = each.split("=")
        rows.append((walk, f"{plan_picture.plan(words[1], int(walk))['rows_of_wave']:,}", time))
    return table(rows)


class Museum:
    """`table`, or one of the themes: exhibits of tests/museum, and what is told of them."""

    def __init__(self):
        self.page = None  # made for the first block

    def __call__(self, asked):
        sys.path.insert(0, str(build.ROOT / "tests" / "museum"))
        import museum
        import page
        if asked not in ("table", *museum.THEMES):
            raise Refusal(f"<!-- museum: {asked} -->: expected table or a theme: {', '.join(museum.THEMES)}.")
        self.page = self.page or page.Museum()
        return self.page(asked)
