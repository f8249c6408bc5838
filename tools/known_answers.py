"""docs/known_answers.json: hashes of D for fixed inputs, one for all rungs and variants. What is asked, and the file."""

import json
import re
from dataclasses import asdict, dataclass, fields, replace

from tools import build
from tools.rung import sizes_of
from tools.terminal import Refusal

FILE = build.ROOT / "docs" / "known_answers.json"
WHAT = ("Hashes of D = A B^T, in f32, for inputs that every machine makes alike. All rungs of the ladder and all their variants "
        "give these bits; ./ladder selfcheck compares.")
PROVENANCE = (
    "Made on the emulated B200 by ./ladder selfcheck --record, which writes only what every rung and variant agrees on and "
    "--check finds right. Nobody here has run these kernels on a real one: there, the answers are a prediction. It rests on the "
    "rule for sums in docs/numerics.md, as MMA-Sim published it and as an H200 and its cuBLAS were found to keep it. Inputs "
    "called position and integer are exact by any rule of rounding; random ones are not.")
HASH = "over the elements of D, row by row, as 32-bit words: h = 0xcbf29ce484222325; h = ((h ^ word) * 0x100000001b3) mod 2^64"


@dataclass(frozen=True)
class Answer:
    name: str
    shape: str
    dtype: str
    input: str
    seed: int = 1
    variants: str = "all"  # or "first": each rung's default alone
    builds: str = "guard"  # or "both": then the one that ships, too, whose waits have no bound
    d_hash: str = ""

    def fits(self, fixed_k):
        """Whether a rung takes this shape: one of them has a K of its own."""
        return fixed_k in (None, sizes_of(self.shape)[2])


# From the smallest that can go wrong. What each is for:
ASKED = [
    # One tile, and half of what a CTA pair computes. A product that says what arrived where, then one that rounds.
    Answer("one tile, position-coded", "128x256x16", "f16", "position"),
    Answer("one tile", "128x256x16", "f16", "random"),
    # The least that TMA can address.
    Answer("one row of eight", "1x8x16", "bf16", "random", variants="first"),
    # Tiles that reach over the edge, in numbers that no cluster divides; at a K that step00 has, too.
    Answer("ragged in M and N", "300x520x16", "bf16", "integer", variants="first", builds="both"),
    Answer("ragged in M, N and K, position-coded", "300x520x328", "f16", "position"),
    Answer("ragged in M, N and K", "300x520x328", "f16", "random"),
    # 22 K tiles of 64 are more than two rounds of the longest ring, which has 9 stages.
    Answer("rings that go round, integers", "136x264x1352", "bf16", "integer", variants="first"),
    Answer("rings that go round", "136x264x1352", "bf16", "random", builds="both"),
    Answer("an ordinary size", "1000x1032x2056", "bf16", "random", variants="first"),
    # 315 tiles of 128 x 256, and 165 of a CTA pair, for 148 SMs: CTAs that stay go round more than twice.
    Answer("more tiles than SMs, K = 16", "2570x3592x16", "f16", "integer", variants="first"),
    Answer("more tiles than SMs", "2570x3592x72", "f16", "random", builds="both"),
]


def write(path, answers):
    """One answer a line, for people."""
    head = {"what": WHAT, "provenance": PROVENANCE, "hash": HASH}
    lines = [f"  {json.dumps(name)}: {json.dumps(text)}," for name, text in head.items()]
    rows = ",\n".join("    " + json.dumps(asdict(answer)) for answer in answers)
    path.write_text("{\n" + "\n".join(lines) + f'\n  "answers": [\n{rows}\n  ]\n}}\n')


# What a field of the file may hold.
VALUES = {"shape": r"[1-9]\d*x[1-9]\d*x[1-9]\d*", "dtype": "f16|bf16", "input": "random|integer|position", "variants": "all|first",
          "builds": "guard|both", "d_hash": "[0-9a-f]{16}"}


def fault(answer):
    """What an answer in the file is not as it must be: (field, rule), or None."""
    for name, pattern in VALUES.items():
        if not re.fullmatch(pattern, getattr(answer, name)):
            return name, f"expected {pattern}"
    if any(size % 8 for size in sizes_of(answer.shape)[1:]):
        return "shape", "expected N and K to be multiples of 8, which is what TMA can address"
    return ("seed", "expected 0 or more") if answer.seed < 0 else None


def read(path):
    again = "./ladder selfcheck --record makes docs/known_answers.json anew."
    try:
        answers = [Answer(**row) for row in json.loads(path.read_text())["answers"]]
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}. {again}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{path} holds no known answers: {error!r}. {again}") from None
    for answer in answers:
        for each in fields(answer):
            if type(getattr(answer, each.name)) is not each.type:
                raise Refusal(f"{path}: {each.name} of '{answer.name}' is {getattr(answer, each.name)!r}. {again}")
        wrong = fault(answer)
        if wrong:
            raise Refusal(f"{path}: {wrong[0]} of '{answer.name}' is {getattr(answer, wrong[0])!r}; {wrong[1]}. {again}")
    if not answers:
        raise Refusal(f"{path} holds no answers. {again}")
    names = [answer.name for answer in answers]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Refusal(f"{path}: there are two answers named '{twice[0]}'. {again}")
    return answers


def recorded(hashes):
    """What was asked, with the hash that each answer had."""
    return [replace(answer, d_hash=hashes[answer.name]) for answer in ASKED]
