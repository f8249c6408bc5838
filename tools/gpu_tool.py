"""NVIDIA's programs that watch a real GPU: where they are, and what they run on. For `ladder profile` and `ladder sanitize`."""

import re
import shutil
from pathlib import Path

from tools import machine, selfcheck
from tools.record import has_gpu
from tools.rung import where
from tools.terminal import Refusal, output_of

# Where a toolkit's installer or Nsight Compute's own puts them, behind the PATH.
PLACES = ("/usr/local/cuda*/bin", "/usr/local/cuda*/compute-sanitizer", "/opt/nvidia/nsight-compute/*")


def version_in(path):
    return [int(number) for number in re.findall(r"\d+", str(path))]


def find(program, package):
    """The newest `program`. `package`: what brings it."""
    there = shutil.which(program)
    if there:
        return Path(there)
    found = [path for place in PLACES for path in Path("/").glob(f"{place.lstrip('/')}/{program}") if shutil.which(str(path))]
    if not found:
        raise Refusal(f"{program} is neither in the PATH nor in {', '.join(PLACES)}. It comes with the CUDA toolkit ({package}); "
                      "install that, or put its folder into the PATH.")
    return max(found, key=version_in)


def version_of(program):
    words = re.search(r"\d{4}\.\d[\d.]*", output_of([str(program), "--version"]) or "")
    return words[0] if words else "unknown"


def require_gpu(purpose, instead):
    """Before anything is built."""
    if not has_gpu():
        raise Refusal(f"this machine has no NVIDIA GPU or no driver for it, and {purpose} needs one; {instead}.")


def on_gpu(name, purpose, instead, variant=""):
    """What the rung says of itself on this machine's GPU (see rung.where)."""
    found, why = where(name, "gpu", variant=variant)
    if not found:
        raise Refusal(f"{purpose} needs a GPU that runs {name}: {why}; {instead}.")
    return found


def chip_of(device_name):
    """`h200` for "NVIDIA H200": the name of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"^NVIDIA ", "", device_name).lower()).strip("-")


def driver():
    gpus = machine.gpus()
    return gpus[0][1] if gpus else selfcheck.driver()
