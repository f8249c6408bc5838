"""`ladder record`: runs the probe tests' programs on this machine's GPU and writes down what they leave."""

import ctypes
import datetime
import os
import subprocess
import tempfile
from pathlib import Path

from tools import build
from tools.terminal import Parser, Refusal, note, say

FILE = build.ROOT / "tests" / "golden" / "h200_probes.json"


def has_gpu():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


def command(arguments):
    parser = Parser(prog="ladder record", description="Run the probe tests' programs on this machine's GPU, print where it "
                    "disagrees with the emulator, and record what it leaves (tests/golden/README.md).")
    parser.add_argument("--out", type=Path, default=FILE, help="the record; the tests read tests/golden/h200_probes.json")
    parser.add_argument("--programs", type=Path, help="keep the programs in this folder instead of a temporary one")
    options = parser.parse_args(arguments)
    if not has_gpu():
        raise Refusal("this machine has no NVIDIA GPU or no driver for it; tests/golden/README.md says how to carry the "
                      "programs to one that has.")
    for target in ("probe_tests", "probe_replay"):
        build.build(quiet=True, target=target)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.programs or Path(temporary)
        note("the probe tests write their programs")
        # Where emulator and record disagree today is for the tests to say.
        subprocess.run([build.FOLDER / "bin" / "probe_tests"], env={**os.environ, "LADDER_PROBE_DUMP": str(folder)},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run([build.FOLDER / "bin" / "probe_replay", folder, options.out,
                               datetime.date.today().isoformat()])
    if done.returncode in (0, 1):
        say(f"recorded in {options.out}")
    return done.returncode
