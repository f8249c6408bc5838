"""The seven shapes of the origin's write-up: Llama-3-70B's linear layers, and 4096^3. Each checked, the same bits from every
rung. The largest takes minutes, so only the first and the last rung that can run it do."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools import build, fuzz  # noqa: E402
from tools.rung import Case, execute  # noqa: E402

SHAPES = {
    "square-4096": (4096, 4096, 4096), "prefill-attn-out": (8192, 8192, 8192), "prefill-mlp-up": (8192, 28672, 8192),
    "decode-attn-out": (256, 8192, 8192), "decode-qkv": (256, 10240, 8192), "decode-mlp-up": (256, 28672, 8192),
    "decode-mlp-down": (256, 8192, 28672),
}


class OriginShapes(unittest.TestCase):
    def check(self, name, dtype):
        rungs = build.rungs()[1:]  # step00 has its own K
        hashes = {}
        for rung in (rungs[0], rungs[-1]) if name == "prefill-mlp-up" else rungs:
            case = Case(rung, *SHAPES[name], dtype, "f32")
            outcome = execute(case, timeout=1800)
            self.assertTrue(outcome.clean, fuzz.complaint(case, outcome))
            hashes[rung] = outcome.report["d_hash"]
        self.assertEqual(len(set(hashes.values())), 1, f"{name}: {hashes}")


for number, each in enumerate(SHAPES):
    setattr(OriginShapes, f"test_{each.replace('-', '_')}",
            lambda self, name=each, dtype=("f16", "bf16")[number % 2]: self.check(name, dtype))


if __name__ == "__main__":
    unittest.main()
