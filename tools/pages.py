"""`ladder pages`: renews what the pages quote of the rungs: reports of rungs broken on purpose.

A page asks for a report with a comment, and the fenced block that follows holds it:

    <!-- report: step01_kloop, parity never flipped, latest -->

which names a mutant of tests/mutants/catalogue.py and a schedule; `..., N lines` stops after so many.
"""

import re
import sys
from pathlib import Path

from tools import build
from tools.terminal import Parser, Refusal, note, say

DOCS = build.ROOT / "docs"
REPORT = re.compile(r"<!-- report: (\w+), (.+?), (earliest|latest|random:\d+)(?:, (\d+) lines)? -->\n\n?```\n(.*?)```\n", re.S)


def reports():
    """(rung, mutant's name, schedule) -> lines of the emulator's report."""
    sys.path.insert(0, str(build.ROOT / "tests" / "mutants"))
    from bench import Bench
    from catalogue import MUTANTS
    bench = Bench()

    def report(rung, name, schedule):
        found = [mutant for mutant in MUTANTS if (mutant.rung, mutant.name) == (rung, name)]
        if not found:
            raise Refusal(f"no mutant '{name}' of {rung}: python3 tests/mutants/show.py lists them")
        text = bench.run(found[0], [schedule])[schedule].text
        return [line for line in text.split("\n") if line.startswith("=========")]
    return bench, report


def renewed(text, report):
    def block(match):
        lines = report(*match.group(1, 2, 3))
        if not lines:
            raise Refusal(f"the emulator reports nothing: {match[0].splitlines()[0]}")
        lines = lines[:int(match[4])] if match[4] else lines
        return match[0][:match.start(5) - match.start()] + "\n".join(lines) + "\n```\n"
    return REPORT.sub(block, text)


def command(arguments):
    parser = Parser(prog="ladder pages", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 when a page is out of date")
    options = parser.parse_args(arguments)
    build.build(quiet=True)
    bench, report = reports()
    stale = []
    try:
        for page in sorted(DOCS.glob("*.md")):
            old = page.read_text()
            new = renewed(old, report)
            if new != old:
                stale.append(page)
                if not options.check:
                    page.write_text(new)
    finally:
        bench.close()
    for page in stale:
        (note if options.check else say)(f"docs/{page.name} {'is out of date: ./ladder pages' if options.check else 'renewed'}")
    return 1 if options.check and stale else 0
