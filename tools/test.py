"""`ladder test`: builds what changed and runs the tests through CTest."""

import os
import subprocess

from tools import build
from tools.terminal import Parser, cores


def command(arguments):
    parser = Parser(prog="ladder test", description="Build what changed and run the tests.")
    parser.add_argument("pattern", nargs="?", help="only tests whose name matches this regular expression (unit.tma, ladder)")
    parser.add_argument("--full", action="store_true", help="the long ones too: more shapes, the compiler from its wheels")
    parser.add_argument("--list", action="store_true", help="print the names instead of running")
    options = parser.parse_args(arguments)
    build.build(quiet=True)
    ctest = ["ctest", "--test-dir", str(build.FOLDER), "--output-on-failure", "--no-tests=error", f"-j{cores()}"]
    if not options.full:
        ctest += ["-LE", "full"]
    if options.pattern:
        ctest += ["-R", options.pattern]
    if options.list:
        ctest += ["-N"]
    return 1 if subprocess.run(ctest, stdin=subprocess.DEVNULL, env={**os.environ, "CLICOLOR": "0"}).returncode else 0
