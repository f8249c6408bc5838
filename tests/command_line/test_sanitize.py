"""`./ladder sanitize`: what is run, what a tool's text is taken for, a finding that is known and one that is not."""

import contextlib
import io
import json
import re
import unittest
from pathlib import Path
from unittest import mock

from support import ROOT, Machine, Refusals, ladder

from tools import build, gpu_tool, sanitize
from tools.sanitize import Run
from tools.terminal import Refusal, plural

CLEAN = """========= COMPUTE-SANITIZER
{"rung": "step01_kloop"}
========= ERROR SUMMARY: 0 errors
"""
NO_RACES = """========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""
OUT_OF_BOUNDS = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 16 bytes
=========     at step01_kloop_hopper<(ladder::DType)0>+0x1230 in hopper.cu:120
=========     by thread (3,0,0) in block (1,0,0)
=========     Access to 0x7f0000001000 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========
========= Invalid __global__ write of size 16 bytes
=========     at step01_kloop_hopper<(ladder::DType)0>+0x1230 in hopper.cu:120
=========     by thread (4,0,0) in block (1,0,0)
=========
========= Target application returned an error
========= ERROR SUMMARY: 2 errors
"""
EXITED = """========= Potential invalid __shared__ write of size 4 bytes
=========     at ladder::mapa_shared_cluster(unsigned int, unsigned int)+0x3710 in cluster.cuh:52
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x10004d0 is located in a block that might have already exited
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernelEx [0x39fc2f] in libcuda.so.1
=========
"""
RACE = """========= Error: Race reported between Write access at kernel+0x90 in hopper.cu:7
=========     and Read access at kernel+0xb0 in hopper.cu:9 [32 hazards]
=========
"""
COUNTER = Run("step07_persistent", "scheduler=counter,ctas=2", "racecheck", "300x520x328")
PLAIN = Run("step01_kloop", "plain", "memcheck", "300x520x328")


def races(*parts):
    return "========= COMPUTE-SANITIZER\n" + "".join(parts) + \
        f"========= RACECHECK SUMMARY: {plural(len(parts), 'hazard')} displayed ({plural(len(parts), 'error')}, 0 warnings)\n"


class Judgement(unittest.TestCase):
    def assert_verdict(self, run, status, text, verdict, failed):
        result = sanitize.judged(run, status, text)
        self.assertEqual((result.verdict, result.failed), (verdict, failed), result)
        return result

    def test_clean(self):
        self.assert_verdict(PLAIN, 0, CLEAN, "clean", False)
        self.assert_verdict(COUNTER, 0, NO_RACES, "clean", False)

    def test_no_errors_is_not_clean_when_the_rung_failed(self):
        """A process that died, or whose D is wrong, has been seen to end with a summary of nothing."""
        result = self.assert_verdict(PLAIN, 1, "step01_kloop: D is wrong\n" + CLEAN, "no verdict", True)
        self.assertIn("exit status 1", result.why)
        self.assertIn("D is wrong", result.why)

    def test_no_summary(self):
        for text, part in (("", "it said nothing"), ("step01_kloop: killed\n", "killed"),
                           ("========= Error: No attachable process found.\n========= ERROR SUMMARY: 0 errors\n", "No attachable process"),
                           ("========= Warning: Detected overflow of tracked cuda::barrier structures.\n" + NO_RACES, "overflow"),
                           ("========= Internal Sanitizer Error: out of memory\n" + CLEAN, "Internal Sanitizer Error")):
            self.assertIn(part, self.assert_verdict(PLAIN, 0, text, "no verdict", True).why)

    def test_findings(self):
        result = self.assert_verdict(PLAIN, 99, OUT_OF_BOUNDS, "2 errors", True)
        self.assertEqual([len(finding) for finding in result.findings], [5, 3])
        self.assertEqual(result.findings[0][0], "Invalid __global__ write of size 16 bytes")
        self.assertEqual(result.findings, sanitize.findings_of(OUT_OF_BOUNDS.replace("=========\n", "")))  # lines between may lack

    def test_a_known_limit(self):
        result = self.assert_verdict(COUNTER, 99, races(EXITED, EXITED),
                                     "2 errors; the tool's limit: see tests/sanitizer/hopper_exited_cta.cu", False)
        self.assertIs(result.limit, sanitize.LIMITS[0])

    def test_the_same_words_elsewhere_are_no_known_limit(self):
        for run in (Run("step07_persistent", "ctas=2", "racecheck", "300x520x328"),
                    Run("step07_persistent", "scheduler=counter,ctas=2", "memcheck", "300x520x328"),
                    Run("step06_multicast", "scheduler=counter,ctas=2", "racecheck", "300x520x328")):
            self.assert_verdict(run, 99, races(EXITED), "1 error", True)

    def test_another_finding_beside_a_known_one(self):
        self.assert_verdict(COUNTER, 99, races(EXITED, RACE), "2 errors", True)
        self.assert_verdict(COUNTER, 99, races(RACE), "1 error", True)

    def test_another_store_to_a_block_that_might_have_exited(self):
        for there, other in (("in cluster.cuh:52", "in hopper.cu:120"), ("size 4 bytes", "size 16 bytes")):
            self.assertIn(there, EXITED)
            self.assert_verdict(COUNTER, 99, races(EXITED, EXITED.replace(there, other)), "2 errors", True)

    def test_findings_that_were_not_shown_may_be_others(self):
        text = races(EXITED).replace("1 hazard displayed", "101 hazards displayed") + \
            "========= ERROR SUMMARY: 1 errors were not printed. Use --print-limit option to adjust the number of printed errors\n"
        self.assert_verdict(COUNTER, 99, text, "101 errors", True)

    def test_a_known_finding_and_a_wrong_result(self):
        self.assert_verdict(COUNTER, 1, races(EXITED), "1 error", True)

    def test_every_limit_has_its_program(self):
        for limit in sanitize.LIMITS:
            text = (ROOT / "tests" / "sanitizer" / f"{limit.program}.cu").read_text()
            self.assertLessEqual(len(text.splitlines()), 60)
            self.assertIn("int main()", text)


# Its findings are the tool's for a program, by name.
SANITIZER = '''case "$*" in
  *--version*) echo "Version 2025.3.0.0 (build 1)" ;;
  *{limit}*) cat {home}/of_limit; exit $(cat {home}/status) ;;
  *racecheck*scheduler=counter,ctas=2*) cat {home}/of_counter; exit 99 ;;
  *racecheck*) cat {home}/no_races ;;
  *--tool\\ memcheck*step01*) cat {home}/of_step01; exit $(cat {home}/status01) ;;
  *) cat {home}/clean ;;
esac'''


class WithSanitizer(Refusals):
    def setUp(self):
        self.machine = Machine()
        self.addCleanup(self.machine.close)
        self.home = self.machine.home
        self.built = []
        tool = self.machine.program("compute-sanitizer", SANITIZER.format(home=self.home, limit="tests/sanitizer/hopper_exited_cta"))
        for name, text in (("of_limit", races(EXITED)), ("of_counter", races(EXITED, EXITED)), ("no_races", NO_RACES), ("clean", CLEAN),
                           ("of_step01", CLEAN), ("status", "99"), ("status01", "0")):
            (self.home / name).write_text(text)
        self.machine.program("hopper_exited_cta", "exit 0", self.home / "build" / "tests" / "sanitizer")
        self.places = {"step01_kloop": {"variants": ["plain"], "fixed_k": None, "settings": {}},
                       "step00_single_mma": {"variants": ["plain"], "fixed_k": 16, "settings": {}},
                       "step07_persistent": {"variants": ["best", "ctas=1"], "fixed_k": None,
                                             "settings": {"scheduler": ["static", "counter"], "ctas": ["auto", "2"], "share": ["b", "a"],
                                                          "accumulators": ["1", "2"]}}}
        for where, name, value in ((gpu_tool, "find", lambda *_: tool), (gpu_tool, "require_gpu", lambda *_: None),
                                   (gpu_tool, "driver", lambda: "580.159"),
                                   (gpu_tool, "where", lambda name, on, variant="": (
                                       {**self.places[name], "device": {"name": "NVIDIA H200"}}, "")),
                                   (build, "FOLDER", self.home / "build"), (build, "rung", lambda name: Path("/nowhere") / name),
                                   (build, "build", lambda quiet, target: self.built.append(target))):
            patcher = mock.patch.object(where, name, value)
            patcher.start()
            self.addCleanup(patcher.stop)

    def sanitize(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            status = sanitize.command([*arguments, "--jobs", "2"])
        return status, out.getvalue()

    def runs(self):
        return [re.sub(r"^.*--tool (\w+) .*/nowhere/(\w+) (.*)$", r"\2 \1 \3", line) for line in self.machine.logged()
                if "/nowhere/" in line]

    def test_every_variant_and_the_extra_settings_under_every_tool(self):
        status, said = self.sanitize("step00", "step01", "step07")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.built, ["rungs", "sanitizer_limits"])
        runs = self.runs()
        extra = sanitize.EXTRA["step07_persistent"]
        self.assertIn("scheduler=counter,ctas=2", extra)
        for rung, shape, variants in (("step00_single_mma", "300x520x16", ["plain"]), ("step01_kloop", "300x520x328", ["plain"]),
                                      ("step07_persistent", "300x520x328", ["best", "ctas=1", *extra])):
            for variant in variants:
                for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
                    found = [run for run in runs if run.startswith(f"{rung} {tool} ") and re.search(rf"--variant {variant}( |$)", run)]
                    self.assertEqual(len(found), 1, (rung, variant, tool))
                    self.assertIn(f"--shape {shape} ", found[0])
                    self.assertIn("--on gpu", found[0])
        self.assertEqual(len(runs), 4 * (2 + 2 + len(extra)))
        for line in self.machine.logged():
            if "/nowhere/" in line:
                self.assertIn("--target-processes all --error-exitcode 99", line)
                self.assertEqual("--num-cuda-barriers 64" in line, "racecheck" in line or "synccheck" in line, line)
        self.assertIn(f"{len(runs) - 1} of {len(runs)} runs clean, 1 with no more than a limit of the tool's.", said)
        self.assertIn("hopper_exited_cta.cu: reproduced", said)

    def test_settings_that_the_chip_does_not_know_are_left_out(self):
        self.places["step07_persistent"]["settings"] = {"scheduler": ["static", "clc"], "accumulators": ["1", "2"]}  # a B200's
        self.assertEqual(self.sanitize("step07")[0], 0)
        self.assertFalse([run for run in self.runs() if "ctas=2" in run or "counter" in run])

    def test_an_unknown_finding_is_a_failure(self):
        (self.home / "of_step01").write_text(OUT_OF_BOUNDS)
        (self.home / "status01").write_text("99")
        status, said = self.sanitize("step01")
        self.assertEqual(status, 1)
        row = next(line for line in said.splitlines() if line.startswith("step01_kloop") and "memcheck" in line)
        self.assertEqual(row.split(), ["step01_kloop", "plain", "memcheck", "2", "errors"])
        self.assertIn("Invalid __global__ write of size 16 bytes", said)
        self.assertIn("3 of 4 runs clean, 1 failed.", said)

    def test_an_unknown_finding_where_a_known_one_is(self):
        (self.home / "of_counter").write_text(races(EXITED, RACE))
        status, said = self.sanitize("step07", "--tool", "racecheck")
        self.assertEqual(status, 1)
        self.assertIn("1 failed", said)

    def test_a_limit_that_has_been_mended(self):
        (self.home / "of_limit").write_text(NO_RACES)
        (self.home / "status").write_text("0")
        status, said = self.sanitize("step01", "--tool", "racecheck")
        self.assertEqual(status, 0)
        self.assertIn("not reproduced: the tool may have been mended", said)

    def test_a_limit_without_a_proof(self):
        program = self.home / "build" / "tests" / "sanitizer" / "hopper_exited_cta"
        self.machine.program(program.name, "echo no device; exit 1", program.parent)
        status, said = self.sanitize("step01", "--tool", "racecheck")
        self.assertEqual(status, 1)
        self.assertIn("goes wrong by itself: no device", said)
        program.unlink()
        status, said = self.sanitize("step01", "--tool", "racecheck")
        self.assertEqual(status, 1)
        self.assertIn("not built", said)
        self.assertEqual(self.sanitize("step01", "--tool", "memcheck")[0], 0)  # is not asked

    def test_written_down(self):
        path = self.home / "found.json"
        (self.home / "of_step01").write_text(OUT_OF_BOUNDS)
        (self.home / "status01").write_text("99")
        self.sanitize("step01", "step07", "--json", str(path))
        report = json.loads(path.read_text())
        self.assertEqual((report["gpu"], report["driver"], report["tool"]), ("NVIDIA H200", "580.159", "compute-sanitizer 2025.3.0.0"))
        rows = {(row["rung"], row["variant"], row["tool"]): row for row in report["runs"]}
        self.assertEqual(rows["step01_kloop", "plain", "memcheck"]["errors"], 2)
        self.assertEqual(rows["step01_kloop", "plain", "memcheck"]["first_finding"][0], "Invalid __global__ write of size 16 bytes")
        self.assertEqual(rows["step01_kloop", "plain", "racecheck"]["verdict"], "clean")
        known = rows["step07_persistent", "scheduler=counter,ctas=2", "racecheck"]
        self.assertIn("the tool's limit", known["verdict"])
        self.assertEqual(len(known["first_finding"]), 4)  # without frames of the host
        self.assertIn("reproduced", report["limits"][0])
        self.sanitize("step01", "--json", str(path))  # once more: its own file
        with self.assertRaisesRegex(Refusal, "--json .*is there and no file"):
            self.sanitize("step01", "--json", str(self.home))
        path.write_text("# Somebody's page\n")
        with self.assertRaisesRegex(Refusal, "--json .*is there and not what ./ladder sanitize writes"):
            self.sanitize("step01", "--json", str(path))
        self.assertEqual(path.read_text(), "# Somebody's page\n")

    def test_a_rung_that_this_gpu_cannot_run(self):
        with mock.patch.object(gpu_tool, "where", lambda *_, **__: (None, "an L4 has neither")):
            with self.assertRaisesRegex(Refusal, "needs a GPU that runs step01_kloop: an L4 has neither"):
                self.sanitize("step01")


class Recorded(unittest.TestCase):
    def test_what_the_page_says_of_an_h200(self):
        record = json.loads((ROOT / "bench" / "h200_sanitizer.json").read_text())
        limited = [run for run in record["runs"] if run["verdict"] != "clean"]
        for run in limited:
            fitting = [limit for limit in sanitize.LIMITS if limit.explains(run["tool"], run["rung"], run["variant"], run["first_finding"])]
            self.assertEqual(run["verdict"], f"{run['errors']} errors; the tool's limit: see tests/sanitizer/{fitting[0].program}.cu")
        told = f"{len(record['runs'])} runs, {len(record['runs']) - len(limited)} of them clean; the other {len(limited)} are"
        self.assertIn(told, (ROOT / "docs" / "hazards.md").read_text())


class FromOutside(Refusals):
    def test_refused(self):
        self.assert_refused_in_one_line(ladder("sanitize", "step99"), "step99: no such rung")
        self.assert_refused_in_one_line(ladder("sanitize", "--jobs", "0"), "--jobs 0")
        self.assert_refused_in_one_line(ladder("sanitize", "--tool", "leakcheck"), "leakcheck")
        self.assert_refused_in_one_line(ladder("sanitize", "--json", "/nosuch/a"), "--json /nosuch/a: there is no folder /nosuch")

    def test_no_sanitizer_and_no_gpu(self):
        with mock.patch.dict("os.environ", PATH="/nowhere"), mock.patch.object(gpu_tool, "PLACES", ("/nowhere/bin",)):
            with self.assertRaisesRegex(Refusal, "^compute-sanitizer is neither in the PATH"):
                sanitize.command(["step01"])
        with mock.patch.object(gpu_tool, "find", lambda *_: Path("compute-sanitizer")), \
                mock.patch.object(gpu_tool, "has_gpu", lambda: False), \
                mock.patch.object(build, "build", side_effect=AssertionError("built")):
            with self.assertRaisesRegex(Refusal, r"no NVIDIA GPU.*ladder check"):
                sanitize.command(["step01"])


if __name__ == "__main__":
    unittest.main()
