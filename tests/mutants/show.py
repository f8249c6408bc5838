"""Prints what mutants say: show.py WORDS [SCHEDULE...], for those whose name holds the words. Without words: their names."""

import sys

from bench import Bench
from catalogue import MUTANTS

if __name__ == "__main__":
    bench = Bench()
    for mutant in MUTANTS:
        name = f"{mutant.rung} {mutant.name} ({mutant.input}, {mutant.shape})"
        if len(sys.argv) < 2:
            print(name)
        elif sys.argv[1] in name:
            for schedule, outcome in bench.run(mutant, sys.argv[2:] or ["earliest", "latest"]).items():
                print(f"---- {name}, {schedule}: exit status {outcome.status}\n{outcome.text}")
    bench.close()
