"""`ladder exercise stepNN`: the step before, with a TODO where each line of this lesson goes; and whether they are done.

The checks are of two kinds. The results: every shape, variant and schedule, bit for bit those of the rung. And the work:
CTAs, boxes, rows, MMAs, commits and what is in flight, by warp; for without them the step before would pass.
"""

import itertools
import json
import shlex
import subprocess

from tools import build, lesson
from tools.rung import Case, execute, variants
from tools.terminal import Parser, Progress, Refusal, note, plural, say

FOLDER = build.ROOT / "exercises"
SHAPES = ((128, 256, 64), (128, 256, 640), (300, 520, 1000), (1, 8, 8), (257, 264, 72), (512, 768, 384))
SCHEDULES = ("earliest", "latest", "random:1", "random:2")
# Where the work is counted: tiles that no cluster divides, and more of them than an emulated B200 holds at once.
COUNTED = ((384, 768, 640), (2560, 2304, 64))
WORK = {"tma_loads": "TMA loads", "tma_box_rows": "rows of their boxes", "tma_stores": "TMA stores",
        "bytes_from_global": "bytes from global memory", "bytes_into_shared": "bytes TMA wrote to shared memory", "mmas": "MMAs",
        "commits": "commits"}
IN_FLIGHT = {"most_loads_in_flight": "most loads in flight", "most_mmas_in_flight": "most MMAs in flight"}


def shown(path):
    return path.relative_to(build.ROOT) if path.is_relative_to(build.ROOT) else path


class Exercise:
    def __init__(self, step, folder):
        self.step, self.before, self.name = step, lesson.predecessor(step), step.kernel
        if not self.before:
            raise Refusal(f"{self.name} is where the ladder begins; the first exercise is the rung after it.")
        self.source = folder / step.path
        self.program = build.FOLDER / "exercises" / self.name

    def write(self):
        if self.source.exists():
            raise Refusal(f"{shown(self.source)} is there already. `./ladder exercise {self.step.short} --check` checks it; to "
                          "start again, delete it.")
        try:
            self.source.parent.mkdir(parents=True, exist_ok=True)
            self.source.write_text(lesson.exercise(self.step))
        except OSError as error:
            raise Refusal(f"{shown(self.source)}: {error.strerror}.") from None
        count = sum(block.number > 0 for block in lesson.blocks(self.step))
        say(f"Wrote {shown(self.source)}: {self.before.kernel} under the name of {self.name}, with {count} TODOs. The page is "
            f"docs/{self.step.rung}.md.\n"
            f"    ./ladder exercise {self.step.short} --check     builds it and says how far it is\n"
            f"    ./ladder exercise {self.step.short} --hint 3    shows the rung's lines for TODO 3")

    def hint(self, number):
        todo = [block for block in lesson.blocks(self.step) if block.number]
        if not 1 <= number <= len(todo):
            raise Refusal(f"--hint {number}: the TODOs of {self.name} are 1 to {len(todo)}.")
        block = todo[number - 1]
        say("\n".join([f"-{line}" for line in block.old] + [f"+{line}" for line in block.new]))

    def compile(self):
        """Builds the reader's file with the rung's own flags and the rest of its sources. False: the compiler refuses."""
        rung, original = self.step.rung, build.ROOT / self.step.path
        object_file = f"CMakeFiles/{rung}_parts.dir/{self.step.path}.o"
        entries = json.loads((build.FOLDER / "compile_commands.json").read_text())
        compiler = next(shlex.split(entry["command"]) for entry in entries
                        if entry["file"] == str(original) and object_file in entry["command"])
        linker = build.link_command(rung)
        self.program.parent.mkdir(exist_ok=True)
        ours = str(self.program.with_suffix(".o"))
        # A warning is none of our business before the reader is done.
        swap = {str(original): str(self.source), object_file: ours, f"bin/{rung}": str(self.program)}
        for command in (compiler, linker):
            words = [swap.get(word, word) for word in command if not word.startswith("-Werror")]
            if subprocess.run(words, cwd=build.FOLDER, stdin=subprocess.DEVNULL).returncode:
                return False
        return True

    def variants(self):
        """Those of the rung that run this step's kernel: in a chain the one of its name; of the last step, all that are left."""
        names, chain = variants(self.step.rung), lesson.CHAINS.get(self.step.rung, ())
        return [self.step.file] if self.step.file in names else [name for name in names if name not in chain]

    def cases(self):
        first, *others = self.variants()
        for shape in SHAPES:
            for schedule in SCHEDULES:
                yield Case(self.step.rung, *shape, dtype="bf16" if shape[0] % 2 else "f16", variant=first, schedule=schedule)
        for variant in others:
            for schedule in SCHEDULES:
                yield Case(self.step.rung, *SHAPES[2], variant=variant, schedule=schedule)

    def wrong_result(self):
        """What is wrong with the first run that goes wrong, or None."""
        cases, bits = list(self.cases()), {}
        progress = Progress(len(cases), "runs")
        try:
            for case in cases:
                ours = execute(case, program=self.program, timeout=60)
                again = case.command_line().replace(f"./ladder run {self.step.rung}", str(shown(self.program)))
                if not ours.good or ours.text:
                    verdict = "A run ends well, but not without a remark:" if ours.good else "A run goes wrong."
                    return f"{verdict}\n{ours.text.strip()}\nAgain: {again}"
                inputs = case.but(schedule="", variant="")
                if inputs not in bits:
                    bits[inputs] = execute(inputs, check=False).report["d_hash"]
                if ours.report["d_hash"] != bits[inputs]:
                    return f"D is within bounds, but its bits are not those of {self.name}. Again: {again}"
                progress.step()
        finally:
            progress.end()
        return None

    def other_work(self):
        """The first run where what was done differs from what the rung does, and how: lines of a table. Or None."""
        for shape, variant in itertools.product(COUNTED, self.variants()):
            case = Case(self.step.rung, *shape, variant=variant, schedule="latest")
            ours, theirs = (execute(case, check=False, program=program).counters for program in (self.program, None))
            warps = enumerate(zip(ours["by_warp"], theirs["by_warp"]))
            found = [("CTAs", ours["ctas"], theirs["ctas"])] if ours["ctas"] != theirs["ctas"] else []
            found += [(f"{name}, warp {warp}", a[key], b[key]) for warp, (a, b) in warps for key, name in WORK.items()
                      if a[key] != b[key]]
            found += [(name, ours[key], theirs[key]) for key, name in IN_FLIGHT.items() if ours[key] < theirs[key]]
            if found:
                return case, found
        return None

    def check(self):
        if not self.source.is_file():
            raise Refusal(f"{shown(self.source)} does not exist; `./ladder exercise {self.step.short}` writes it.")
        left = self.source.read_text().count("// TODO ")
        remaining = f"{plural(left, 'TODO')} left. " if left else ""
        if not self.compile():
            note(f"{remaining}It does not build; why is said above.")
            return 1
        wrong = self.wrong_result()
        if wrong:
            note(f"{remaining}{wrong}")
            return 1
        different = self.other_work()
        if different:
            case, lines = different
            note(f"{remaining}Every result is right, under every schedule; but it does not do what {self.name} does:\n")
            note(f"{f'at {case.shape}, variant {case.variant}':<44}{'yours':>14}{self.name:>24}")
            for name, a, b in lines:
                note(f"{name:<44}{a:>14,}{b:>24,}")
            return 1
        say(f"{remaining}Right: {plural(len(list(self.cases())), 'run')}, each with the bits of {self.name}, and the same work.")
        return 0


def command(arguments):
    parser = Parser(prog="ladder exercise", description=__doc__.split("\n")[0])
    parser.add_argument("step", metavar="stepNN", help="a rung; or where it has several steps, one of them: step07:pair")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="build it, run it, compare it with the rung")
    what.add_argument("--hint", type=int, metavar="N", help="the rung's lines for TODO N")
    parser.add_argument("--folder", type=lambda text: build.Path(text).absolute(), default=FOLDER,
                        help="where exercises lie (default: exercises/)")
    options = parser.parse_args(arguments)
    step = lesson.named(options.step)
    if step.rung in lesson.CHAINS and ":" not in options.step:
        several = ", ".join(each.short for each in lesson.steps() if each.rung == step.rung)
        raise Refusal(f"{step.rung} is several steps, and each is an exercise: {several}.")
    exercise = Exercise(step, options.folder)
    if options.hint is not None:
        return exercise.hint(options.hint) or 0
    if not options.check:
        return exercise.write() or 0
    build.build(quiet=True, target="rungs")
    return exercise.check()
