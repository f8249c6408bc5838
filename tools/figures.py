"""What gemm_bench has measured: bench/h200.json, or somebody's own file. And what the origin has: bench/origin.json.

A side that a file lacks, or that has no time there, is None and never a zero.
"""

import functools
import json
from pathlib import Path

from tools import build
from tools.terminal import Refusal

FILE = build.ROOT / "bench" / "h200.json"
ORIGIN = build.ROOT / "bench" / "origin.json"
CUBLAS = ("cublas:default", "cublas:best")
CUBLAS_NAME = "cuBLAS"  # the better of the two


def read(path):
    """A file that gemm_bench has written."""
    path = Path(path)
    try:
        record = json.loads(path.read_text())
        for each in record["results"]:
            each["shape"], each["protocol"], each["m"], each["n"], each["k"], [side["side"] for side in each["sides"]]
    except OSError:
        raise Refusal(f"{path}: no such file.") from None
    except (ValueError, KeyError, TypeError):
        raise Refusal(f"{path}: not what gemm_bench writes (`./ladder bench`).") from None
    return record


@functools.lru_cache(maxsize=None)
def origin():
    return json.loads(ORIGIN.read_text())


FEW_ROWS = [f"{m}x8192x8192" for m in (1, 16, 64, 128)]
SHAPES = [*origin()["shapes"], "2048x2048x2048", "16384x16384x16384", *FEW_ROWS]


def sizes(shape):
    """M, N and K of MxNxK, or of a name."""
    known = origin()["shapes"]
    parts = known.get(shape) or shape.split("x")
    if len(parts) != 3 or not all(str(each).isdigit() and int(each) > 0 for each in parts):
        raise Refusal(f"{shape}: not a shape; write MxNxK, as in 4096x4096x4096, or one of {', '.join(known)}.")
    return tuple(map(int, parts))


def sizes_of(result):
    return result["m"], result["n"], result["k"]


def results(record, protocol):
    return [each for each in record["results"] if each["protocol"] == protocol]


def result(record, protocol, shape):
    """What was measured of a shape, whichever of its names the file has; or None."""
    return next((each for each in results(record, protocol) if sizes_of(each) == sizes(shape)), None)


def known(record, protocol):
    return f"it has {', '.join(dict.fromkeys(each['shape'] for each in results(record, protocol))) or 'nothing'} of protocol {protocol}"


def names(measured):
    """The sides of results that have a time, in the order they were measured in."""
    return list(dict.fromkeys(side["side"] for each in measured for side in each["sides"] if side.get("median_us")))


def better_cublas(measured):
    return min((side for side in measured["sides"] if side["side"] in CUBLAS and side.get("median_us")),
               key=lambda side: side["median_us"], default=None)


def side(measured, name):
    """The row of a side, by its whole name or as `step07:best`; cuBLAS is the better one."""
    if name == CUBLAS_NAME:
        return better_cublas(measured)
    return next((each for each in measured["sides"] if each.get("median_us") and name in (each["side"], short(each["side"]))), None)


def short(name):
    """step07:best for step07_persistent:best"""
    rung, colon, variant = name.partition(":")
    return rung.split("_")[0] + colon + variant if rung.startswith("step") else name


def rung_of(name):
    return name.partition(":")[0]


def of_cublas(measured, row):
    """What a side's speed is of the better cuBLAS of the same run; None without one."""
    best = better_cublas(measured)
    return best and best["median_us"] / row["median_us"]


def where(record, protocol=""):
    """NVIDIA H200, 2026-12-01, burst"""
    return ", ".join(filter(None, (record.get("gpu", "a GPU"), record.get("date", "").split(" ")[0], protocol)))
