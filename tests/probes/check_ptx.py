#!/usr/bin/env python3
"""Passes every program that the probe tests run through ptxas: the tests must speak valid PTX. And counts how many of
them were held to the record of what an H200 leaves: a change to the probes' programs makes it stale without a word.

check_ptx.py TEXTS [--all | --record]: assembles what the probe tests have left in a folder, LADDER_PROBE_TEXTS, but for
programs that accepted_ptx.txt says this very ptxas has taken before. --all: those too. --record: writes down those that
it takes now. Exit status 77 when there is no ptxas (LADDER_PTXAS, CUDA_PATH, PATH are searched)."""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys


ACCEPTED = pathlib.Path(__file__).with_name("accepted_ptx.txt")
FEWEST_COMPARED = 2400  # below this it is time to record anew: tests/golden/README.md


def find_ptxas():
    named = os.environ.get("LADDER_PTXAS")
    if named and pathlib.Path(named).exists():
        return named
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root and (pathlib.Path(root) / "bin" / "ptxas").exists():
            return str(pathlib.Path(root) / "bin" / "ptxas")
    return shutil.which("ptxas")


def assemble(ptxas, program):
    arch = re.search(r"^\.target\s+(\w+)", program.read_text(), re.MULTILINE).group(1)
    done = subprocess.run([ptxas, "-arch=" + arch, str(program), "-o", os.devnull], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{program.name}:\n{done.stderr}\n{program.read_text()}"


def version(ptxas):
    return subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


def key(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def accepted_before(ptxas):
    """Keys of the programs that this ptxas has taken; none when the file is another's."""
    lines = ACCEPTED.read_text().splitlines() if ACCEPTED.exists() else []
    return set(lines[1:]) if lines[:1] == [version(ptxas)] else set()


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--all"], ["--record"]):
        sys.exit(__doc__)
    records = sys.argv[2:] == ["--record"]
    ptxas = find_ptxas()
    if not ptxas:
        print("no ptxas found")
        sys.exit(77)
    # Programs that are wrong on purpose leave no text. The same text may have been run on several inputs.
    folder = pathlib.Path(sys.argv[1])
    programs = {key(path.read_text()): path for path in sorted(folder.glob("*.ptx"))}
    if not programs:
        sys.exit(f"the tests have left no programs in {folder}")
    compared = sum(1 for _ in folder.glob("*.compared"))
    known = set() if sys.argv[2:] == ["--all"] else accepted_before(ptxas)
    new = [path for name, path in programs.items() if name not in known]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda p: assemble(ptxas, p), new) if text]
    for text in complaints[:10]:
        print(text)
    if records and not complaints:
        ACCEPTED.write_text("\n".join([version(ptxas), *sorted(programs)]) + "\n")
    print(f"{len(programs)} programs, {len(new)} of them assembled, {len(complaints)} refused by {ptxas}; {compared} compared with the H200's record")
    if compared < FEWEST_COMPARED:
        print(f"fewer than {FEWEST_COMPARED}: record anew what an H200 leaves (tests/golden/README.md)")
    sys.exit(1 if complaints or compared < FEWEST_COMPARED else 0)


if __name__ == "__main__":
    main()
