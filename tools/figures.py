"""What gemm_bench has measured: bench/h200.json, or somebody's own file. And what the origin has: bench/origin.json.

A side that a file lacks, or that has no time there, is None and never a zero.
"""

import functools
import json
import math
import statistics
from pathlib import Path

from tools import build
from tools.terminal import Refusal

FILE = build.ROOT / "bench" / "h200.json"
ORIGIN = build.ROOT / "bench" / "origin.json"
CUBLAS = ("cublas:default", "cublas:best")
CUBLAS_NAME = "cuBLAS"  # the better of the two


TEXT, WHOLE, NUMBER, LIST = "text", "a whole number above 0", "a number of 0 or more", "a list"
# What is read of a file, and what it must be: what must be there, and what may be.
OF_RECORD = {"results": LIST}, dict.fromkeys(("gpu", "date", "driver", "cublas", "in", "out"), TEXT)
OF_RESULT = ({"shape": TEXT, "protocol": TEXT, "m": WHOLE, "n": WHOLE, "k": WHOLE, "sides": LIST},
             {"sets": WHOLE, "idle_s": NUMBER, "seconds": NUMBER})
OF_SIDE = {"side": TEXT}, dict.fromkeys(("median_us", "p10_us", "p90_us", "sm_mhz"), NUMBER)


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


FITS = {TEXT: lambda value: isinstance(value, str) and value, LIST: lambda value: isinstance(value, list),
        WHOLE: lambda value: number(value) and isinstance(value, int) and 0 < value < 2 ** 63, NUMBER: lambda value: number(value) and value >= 0}


def require(values, rules, what):
    """ValueError, in words, where one of a file's objects is not as it should be."""
    needed, others = rules
    if not isinstance(values, dict):
        raise ValueError(f"{what} is {json.dumps(values)[:40]}, expected an object")
    for key, kind in (needed | others).items():
        if key in needed and key not in values:
            raise ValueError(f"{what} has no {key}")
        if key in others and values.get(key) is None:
            values.pop(key, None)  # a null: as if it were not there
        elif not FITS[kind](values[key]):
            raise ValueError(f"{key} of {what} is {json.dumps(values[key])[:40]}, expected {kind}")


def read(path):
    """A file that gemm_bench has written."""
    path = Path(path)
    try:
        record = json.loads(path.read_text())
        require(record, OF_RECORD, "it")
        for at, each in enumerate(record["results"], 1):
            require(each, OF_RESULT, f"result {at}")
            for row in each["sides"]:
                require(row, OF_SIDE, f"a side at {each['shape']}")
    except FileNotFoundError:
        raise Refusal(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise Refusal(f"{path}: a folder; name a file that gemm_bench has written (`./ladder bench`).") from None
    except OSError as error:
        raise Refusal(f"{path}: cannot be read: {error.strerror}.") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise Refusal(f"{path}: not what gemm_bench writes (`./ladder bench`): no JSON.") from None
    except (ValueError, OverflowError) as error:
        raise Refusal(f"{path}: not what gemm_bench writes (`./ladder bench`): {error}.") from None
    if not record["results"]:
        raise Refusal(f"{path}: it has no results; `./ladder bench` measures some.")
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


def spread(row):
    """Half of what lies between the tenth and the ninetieth of a hundred samples, in percent of the median; None where a file has it not."""
    low, high, median = (row.get(key) for key in ("p10_us", "p90_us", "median_us"))
    return None if low is None or high is None or not median else 50 * (high - low) / median


def spread_in_words(measured):
    """A sentence on results' spread, as `ladder bench --show` and the pages have it; empty where a file has none."""
    found = [(spread(row), row["side"], each["shape"]) for each in measured for row in each["sides"] if spread(row) is not None]
    if not found:
        return ""
    most, name, shape = max(found, key=lambda each: each[0])
    return (f"Spread (half of p90 - p10, as a share of the median time): in the middle {statistics.median(each[0] for each in found):.1f} %, "
            f"at most {most:.1f} % ({name} at {shape}).")


def where(record, protocol=""):
    """NVIDIA H200, 2026-12-01, burst"""
    return ", ".join(filter(None, (record.get("gpu", "a GPU"), record.get("date", "").split(" ")[0], protocol)))
