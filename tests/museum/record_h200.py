#!/usr/bin/env python3
"""Runs every Hopper exhibit of a folder, broken and fixed, many times on the GPU of this machine, and writes what came out.

    record_h200.py FOLDER OUT.json [--runs 200] [--limit 30] [--failures 20] [--kills 2] [NAME...]

Needs Python 3.8, the folder of built exhibits and libcudart.so.13 (LD_LIBRARY_PATH, if it is not where they were built). A
launch that fails breaks its process's context, and a process that hangs is killed after --limit seconds: the runs that are
left go on in a new one, until --failures of them ended badly or --kills were killed.

OUT.json: the GPU, and for each exhibit and twin: runs (those that were made), right, wrong, failed, hung (killed, or a wait
gave up), what the first wrong run said, and the errors."""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

KINDS = "right", "wrong", "failed", "hung"
GAVE_UP = "(a wait gave up)"


def gpu():
    try:
        line = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout.splitlines()[0]
        name, driver = (part.strip() for part in line.split(","))
        return {"gpu": name, "driver": driver}
    except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
        return {"gpu": "no nvidia-smi here", "driver": ""}


def launch(program, twin, runs, limit):
    """The lines behind `result: `, whether the process had to be killed, and its last word on stderr."""
    process = subprocess.Popen([str(program), twin, "--bounded", "--runs", str(runs)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    try:
        (text, said), killed = process.communicate(timeout=limit), False
    except subprocess.TimeoutExpired:
        process.kill()
        (text, said), killed = process.communicate(), True
    return re.findall(r"^result: (.*)$", text, re.MULTILINE), killed, (said.strip().splitlines() or [""])[-1].strip()


def record(program, twin, runs, limit, failures, kills):
    counts = collections.Counter()
    errors = collections.Counter()
    first_wrong, ended_badly, killed_in_all = None, 0, 0
    while sum(counts.values()) < runs and ended_badly < failures and killed_in_all < kills:
        asked = runs - sum(counts.values())
        results, killed, said = launch(program, twin, asked, limit)
        for result in results:
            if result == "right":
                counts["right"] += 1
            elif result.startswith("wrong"):
                counts["wrong"] += 1
                first_wrong = first_wrong or result
            else:
                counts["hung" if result.endswith(GAVE_UP) else "failed"] += 1
                errors[result.replace("launch failed: ", "")] += 1
        if killed:
            killed_in_all += 1
            counts["hung"] += 1
            errors["killed after %g s" % limit] += 1
        elif len(results) < asked and not (results and results[-1].startswith("launch failed")):
            counts["failed"] += 1  # it ended without a word
            errors["ended early: " + said] += 1
        ended_badly += killed or len(results) < asked or results[-1].startswith("launch failed")
    entry = {"exhibit": program.name, "twin": twin, "runs": sum(counts.values())}
    entry.update({kind: counts[kind] for kind in KINDS})
    if first_wrong:
        entry["first_wrong"] = first_wrong
    if errors:
        entry["errors"] = dict(errors)
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="only these exhibits")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--limit", type=float, default=30, help="seconds that one process may take")
    parser.add_argument("--kills", type=int, default=2, help="processes that may be killed, per twin")
    parser.add_argument("--failures", type=int, default=20, help="processes that may end badly, per twin")
    options = parser.parse_args()
    programs = [each for each in sorted(options.folder.glob("hopper_*")) if each.is_file() and os.access(each, os.X_OK)
                and (not options.names or each.name in options.names)]
    if not programs:
        sys.exit("no hopper_* programs in %s" % options.folder)
    found = {**gpu(), "recorded": time.strftime("%Y-%m-%d"), "exhibits": []}
    for program in programs:
        for twin in ("broken", "fixed"):
            began = time.monotonic()
            entry = record(program, twin, options.runs, options.limit, options.failures, options.kills)
            found["exhibits"].append(entry)
            counts = " ".join("%s %d" % (kind, entry[kind]) for kind in KINDS)
            print("%-40s %-6s %s  %.1f s" % (program.name, twin, counts, time.monotonic() - began), flush=True)
            options.out.write_text(json.dumps(found, indent=1) + "\n")  # what there is, should somebody end this
    return 0


if __name__ == "__main__":
    sys.exit(main())
