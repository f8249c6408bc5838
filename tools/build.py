"""`ladder build`: everything the tree needs, then CMake and Ninja.

A stamp in the build folder remembers what was found last time. While it holds, a build is one call of Ninja, which costs
well under a second when nothing changed.
"""

import argparse
import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools import machine, toolkit
from tools.terminal import Parser, Refusal, cores, note, say

ROOT = toolkit.ROOT
FOLDER = Path(os.environ.get("LADDER_BUILD") or ROOT / "build").absolute()
STAMP = FOLDER / "ladder.json"
SYSTEMS = {"x86_64", "aarch64"}


def rungs():
    """Names of the executables that are built, in the ladder's order."""
    return sorted(path.name for path in (FOLDER / "bin").glob("step[0-9][0-9]_*") if os.access(path, os.X_OK))


def _the_one(name, there):
    found = [each for each in there if each == name or each.split("_")[0] == name]
    if len(found) != 1:
        raise Refusal(f"{name}: no such rung; there are {', '.join(there)}.")
    return found[0]


def sources():
    """Names of all rungs, in the ladder's order, built or not."""
    return sorted(path.parent.name for path in ROOT.glob("step[0-9][0-9]_*/main.cpp"))


def named(name):
    """The rung called `name`, which may be just `step01`. Looks at the sources: nothing need be built."""
    return _the_one(name, sources())


def rung(name):
    """The executable of the rung called `name`."""
    return FOLDER / "bin" / _the_one(name, rungs())


def _commands(name, *options):
    """What Ninja runs for an executable in bin/, a line each."""
    ninja = [_stamp().get("ninja", "ninja"), "-C", str(FOLDER), "-t", "commands", *options, f"bin/{name}"]
    return subprocess.run(ninja, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True).stdout.strip().split("\n")


def link_command(name):
    """How the executable is linked, in the build folder."""
    words = shlex.split(_commands(name, "-s")[-1])
    return words[words.index("&&") + 1:len(words) - 1 - words[::-1].index("&&")]  # CMake writes `: && ... && :`


def rebuilt(name, changes, folder):
    """The executable `name` once more, in folder/bin, of other objects: `changes` has for a source, as the tree names it, another
    text of it (or None) and more options for its compiler."""
    commands, link, program = _commands(name), link_command(name), folder / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    for source, (text, options) in changes.items():
        made = next(word for word in link if word.endswith(f"/{source}.o"))
        compiler = next(words for words in map(shlex.split, commands) if made in words and "-c" in words)
        ours, given = folder / f"{Path(source).name}.o", ROOT / source
        if text is not None:
            given = folder / Path(source).name
            given.write_text(text)
        other = {made: str(ours), f"{made}.d": f"{ours}.d", str(ROOT / source): str(given)}
        compiler = [other.get(word, word) for word in compiler]
        at = compiler.index("-c")
        subprocess.run([*compiler[:at], *options, *compiler[at:]], cwd=FOLDER, check=True, stdin=subprocess.DEVNULL)
        link[link.index(made)] = str(ours)
    link[link.index("-o") + 1] = str(program)
    subprocess.run(link, cwd=FOLDER, check=True, stdin=subprocess.DEVNULL)
    (folder / "lib").unlink(missing_ok=True)
    (folder / "lib").symlink_to(libraries())  # where it looks for its CUDA runtime
    return program


def libraries():
    """Folder of the emulated CUDA runtime."""
    return FOLDER / "lib"


def wishes(options):
    """What the user asked for: a build folder made for other wishes is configured anew."""
    scripts = b"".join((ROOT / "tools" / name).read_bytes()
                       for name in ("build.py", "machine.py", "toolkit.py", "toolkit-wheels.txt"))
    return {
        "type": "Debug" if options.debug else "Release",
        "cublas": options.cublas,
        "environment": {name: os.environ.get(name) for name in ("CXX", "CUDACXX", "CUDA_HOME", "LADDER_TOOLKIT")},
        "root": str(ROOT),
        "scripts": hashlib.sha256(scripts).hexdigest(),
    }


def _stamp():
    try:
        return json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}


def remembered(wanted):
    """What the stamp says, when it was made for the same wishes and the compilers are still there."""
    stamp = _stamp()
    if (stamp.get("wishes"), stamp.get("folders")) != (wanted, [str(ROOT), str(FOLDER)]) or \
            not (FOLDER / "build.ninja").exists():
        return None
    return stamp if all(os.access(stamp[tool], os.X_OK) for tool in ("cxx", "nvcc", "ninja")) else None


def prepare(wanted):
    """Finds or installs what the build needs and configures the build folder."""
    if platform.system() != "Linux" or platform.machine() not in SYSTEMS:
        raise Refusal(f"This is {platform.system()} on {platform.machine()}; the CUDA 13 compiler and the emulator run on Linux "
                      "on x86-64 and arm64. Use the Dockerfile.")
    cxx = machine.compiler()
    machine.install(machine.missing_packages(cxx))
    still = machine.missing_packages(cxx)
    if still:
        raise Refusal(f"Still missing after installing: {', '.join(still)}. This system's packages keep their headers where "
                      f"{cxx} does not look; use the Dockerfile.")
    gpus = machine.gpus()
    nvcc = toolkit.find(with_cublas=wanted["cublas"] or bool(gpus))
    for name, driver in gpus:
        if driver.split(".")[0].isdigit() and int(driver.split(".")[0]) < toolkit.OLDEST_DRIVER:
            note(f"{name}: its driver {driver} is too old for CUDA 13, which needs {toolkit.OLDEST_DRIVER} or newer. "
                 "Everything will run on the emulator.")

    before = _stamp()
    # CMake can change neither compilers nor places in a configured folder.
    if (before.get("cxx"), before.get("nvcc"), before.get("folders")) != (cxx, str(nvcc), [str(ROOT), str(FOLDER)]):
        (FOLDER / "CMakeCache.txt").unlink(missing_ok=True)
        shutil.rmtree(FOLDER / "CMakeFiles", ignore_errors=True)
    STAMP.unlink(missing_ok=True)
    note(f"Configuring with {cxx} and {nvcc} ...")
    configure = ["cmake", "-S", str(ROOT), "-B", str(FOLDER), "-G", "Ninja", f"-DCMAKE_BUILD_TYPE={wanted['type']}",
                 f"-DCMAKE_CXX_COMPILER={cxx}", f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DCMAKE_CUDA_HOST_COMPILER={cxx}"]
    log = FOLDER / "configure.log"
    with open(log, "w") as stream:
        done = subprocess.run(configure, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Refusal(f"CMake could not configure {FOLDER}:\n{log.read_text().strip()}")
    found = {"wishes": wanted, "cxx": cxx, "nvcc": str(nvcc), "ninja": shutil.which("ninja"),
             "folders": [str(ROOT), str(FOLDER)]}
    STAMP.write_text(json.dumps(found, indent=1) + "\n")
    return found


@contextlib.contextmanager
def alone():
    """One build at a time in a build folder; a second one waits."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        lock = open(FOLDER / "ladder.lock", "w")
    except OSError as error:
        raise Refusal(f"{FOLDER} cannot be written: {error.strerror}. Give write access to it, or name another folder: "
                      "LADDER_BUILD=/somewhere ./ladder build.") from None
    with lock:
        for attempt in itertools.count():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == 20:
                    note("Waiting for another build to end ...")
                time.sleep(0.1)
        yield


def up_to_date(wanted, target):
    """Whether there is nothing to build, found without writing anything."""
    found = remembered(wanted)
    if not found:
        return False
    ninja = subprocess.run([found["ninja"], "-C", str(FOLDER), "-n", target], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ninja.returncode == 0 and "no work to do" in ninja.stdout


def build(options=None, quiet=False, target="all"):
    """Builds what changed: everything, or the target `rungs`. With `quiet`, says nothing at the end, and nothing at all when
    there is nothing to do."""
    if options is None:
        before = _stamp().get("wishes", {})  # keep the kind of build that is there
        options = argparse.Namespace(debug=before.get("type") == "Debug", cublas=bool(before.get("cublas")), jobs=None)
    wanted = wishes(options)
    if options.jobs is not None and options.jobs < 1:
        raise Refusal(f"--jobs {options.jobs}: expected 1 or more compilers at a time.")
    if FOLDER.exists() and not os.access(FOLDER, os.W_OK) and up_to_date(wanted, target):
        return
    with alone():
        found = remembered(wanted) or prepare(wanted)
        run_ninja([found["ninja"], "-C", str(FOLDER), f"-j{options.jobs or cores()}", target])
    if not quiet:
        say(f"Built {', '.join(rungs()) or 'no rung yet'} in {os.path.relpath(FOLDER / 'bin')}/.")


def run_ninja(command):
    """Shows Ninja's steps, rewritten in place on a terminal, and nothing at all when there was nothing to do."""
    terminal = sys.stderr.isatty()
    shown = False
    ninja = subprocess.Popen(command, env={**os.environ, "NINJA_STATUS": "[%f/%t %es] "}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in ninja.stdout:
        line = line.rstrip("\n")
        if line.startswith(("[0/", "-- ", "ninja: Entering", "ninja: no work")):
            continue
        step = re.match(r"\[\d+/\d+ ", line)
        if terminal and step:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line[:width]}")
            sys.stderr.flush()
        else:
            note(("\r\x1b[K" if terminal and shown else "") + line)
        shown = bool(step)
    if terminal and shown:
        sys.stderr.write("\r\x1b[K")
    if ninja.wait():
        note("The build failed; the first error is above.")
        raise SystemExit(1)


def command(arguments):
    parser = Parser(prog="ladder build", description="Install what is missing, configure, build.")
    parser.add_argument("--debug", action="store_true", help="unoptimised, with assertions")
    parser.add_argument("--cublas", action="store_true", help="fetch cuBLAS beside the compiler even without a GPU")
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at a time (default: one a core)")
    build(parser.parse_args(arguments))
    return 0
