"""`ladder emulate PROGRAM ARGS`: any CUDA program on the emulated chip, unchanged."""

import argparse
import os
import re
import shutil

from tools import build, program
from tools.terminal import Parser, Refusal

EMULATED_RUNTIME = "libcudart.so.13"


def add_machine_options(parser, chip="LADDER_CHIP, or b200", schedule="LADDER_SCHEDULE, or earliest"):
    """The machine that a program finds itself on, and what it is by default."""
    parser.add_argument("--chip", metavar="NAME", help=f"{' or '.join(program.CHIPS)} (default: {chip})")
    parser.add_argument("--schedule", metavar="WHEN", help="when asynchronous work is done: earliest, latest, random or "
                        f"random:SEED (default: {schedule})")
    parser.add_argument("--seed", type=int, metavar="N", help="of the random schedule")
    parser.add_argument("--threads", type=int, metavar="N", help="host threads (default: LADDER_THREADS, or one a core)")


def add_options(parser):
    """Options of an emulated run, shared by the commands that start one."""
    add_machine_options(parser)
    parser.add_argument("--strict", action="store_true", help="results of unfinished work are poisoned")
    parser.add_argument("--counters", metavar="FILE", help="append what each launch did, one JSON object a line")


def schedule(options):
    """The schedule that the options ask for, as LADDER_SCHEDULE takes it; None when they ask for none."""
    if options.seed is not None:
        if options.schedule not in (None, "random"):
            raise Refusal(f"--seed {options.seed}: --schedule {options.schedule} has no seed; leave one of the two out.")
        if options.seed < 0:
            raise Refusal(f"--seed {options.seed}: expected a whole number, 0 or more.")
        return f"random:{options.seed}"
    if options.schedule and not re.fullmatch(r"earliest|latest|random(:\d+)?", options.schedule):
        raise Refusal(f"--schedule {options.schedule}: expected earliest, latest, random or random:SEED.")
    return options.schedule


def chip(options):
    """The chip to be, from the option or the environment."""
    name, source = (options.chip, "--chip ") if options.chip else (os.environ.get("LADDER_CHIP") or "b200", "LADDER_CHIP=")
    if name not in program.CHIPS:
        raise Refusal(f"{source}{name}: no such chip; the emulator can be {' or '.join(program.CHIPS)}.")
    return name


def environment(options, base=None):
    """The environment that a program needs to find the emulated chip. An option goes before the variable that says the
    same; values that the emulator would refuse are refused."""
    if options.threads is not None and not 0 <= options.threads <= 256:
        raise Refusal(f"--threads {options.threads}: expected 1 to 256, or 0 for one a core.")
    variables = dict(os.environ if base is None else base)
    variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(build.libraries()), variables.get("LD_LIBRARY_PATH")]))
    variables["LADDER_CHIP"] = chip(options)
    if wanted := schedule(options):
        variables["LADDER_SCHEDULE"] = wanted
    if options.threads is not None:
        variables["LADDER_THREADS"] = str(options.threads)
    if options.strict:
        variables["LADDER_STRICT"] = "1"
    if options.counters:
        variables["LADDER_COUNTERS"] = os.path.abspath(options.counters)
    return variables


def refuse_unsuitable(path, chip):
    """Says in one line why a program cannot be emulated, before it runs. Returns what was read of it."""
    if not os.path.exists(path):
        raise Refusal(f"{path}: no such file.")
    if os.path.isdir(path):
        raise Refusal(f"{path} is a folder; name the program in it.")
    try:
        found = program.inspect(path)
    except program.NotElf:
        raise Refusal(f"{path} is not a 64-bit Linux executable (ELF). Give the compiled program itself; for a script, its "
                      "interpreter followed by the script.") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}.") from None
    if not found.fits_this_machine:
        raise Refusal(f"{path} is built for another kind of processor than this one; rebuild it here.")
    if not os.access(path, os.X_OK):
        raise Refusal(f"{path} is not executable: chmod +x {path}")
    if found.has_kernels:
        older = next((each for each in found.needed if each.startswith("libcudart.so.") and each != EMULATED_RUNTIME), None)
        if older:
            raise Refusal(f"{path} needs {older}; the emulator stands in for CUDA 13's {EMULATED_RUNTIME}. Rebuild it with "
                          "CUDA 13.")
        if found.registers_statically and EMULATED_RUNTIME not in found.needed:
            raise Refusal(f"{path} has the CUDA runtime built in, so that no other can take its place. Rebuild it with "
                          "`nvcc -cudart shared` (CMake: CUDA_RUNTIME_LIBRARY Shared).")
        capability = program.CHIPS[chip]
        if not any(entry.fits(capability) for entry in found.ptx):
            has = ", ".join(sorted({str(entry) for entry in found.ptx})) or "none at all, only machine code"
            raise Refusal(f"{path} has no PTX for a {chip.upper()} (it has {has}). Rebuild it with "
                          f"`{program.PTX_FLAGS[chip]}`.")
    return found


def command(arguments):
    parser = Parser(prog="ladder emulate", description=__doc__,
                                     epilog="Options go before PROGRAM; all that follows is the program's own.")
    add_options(parser)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS", help="handed to the program")
    options = parser.parse_args(arguments)
    variables = environment(options)
    path = options.program if os.path.sep in options.program else shutil.which(options.program) or options.program
    found = refuse_unsuitable(path, chip(options))
    build.build(quiet=True, target="rungs")
    runtime = build.libraries() / EMULATED_RUNTIME
    if not runtime.exists():
        raise Refusal(f"{runtime} was not built; run ./ladder build.")
    if found.rpath:  # goes before LD_LIBRARY_PATH; a library that is loaded already goes before that
        variables["LD_PRELOAD"] = " ".join(filter(None, [str(runtime), variables.get("LD_PRELOAD")]))
    os.execve(path, [options.program, *options.rest], variables)
