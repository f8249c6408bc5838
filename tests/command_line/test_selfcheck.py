"""`./ladder selfcheck`: what is asked of whom, what a run's end is taken for, when it goes no further, what is written down."""

import contextlib
import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from support import BUILD, ROOT, Refusals, ladder

from tools import build, compare, known_answers, rung, selfcheck
from tools.known_answers import Answer
from tools.terminal import Refusal

COMMITTED = known_answers.read(known_answers.FILE)
TILE, RANDOM_TILE = COMMITTED[:2]
LARGER = dataclasses.replace(TILE, name="larger", shape="300x520x16", builds="both")
FIRST_ONLY = dataclasses.replace(TILE, name="of the first", shape="1x8x16", variants="first")


def fnv(words):
    h = 0xCBF29CE484222325
    for word in words:
        h = ((h ^ word) * 0x100000001B3) % 2**64
    return f"{h:016x}"


def listed_variants():
    """Every rung's, as --help lists them."""
    for path in sorted((BUILD / "bin").glob("step[0-9][0-9]_*")):
        text = subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        part = re.search(r"^Variants on Blackwell:\n((?:    .*\n)+)", text, re.MULTILINE)[1]
        for line in part.splitlines():
            yield path.name, line.split()[0]


class KnownAnswers(unittest.TestCase):
    def test_the_file_answers_what_is_asked(self):
        self.assertEqual([dataclasses.replace(answer, d_hash="") for answer in COMMITTED], known_answers.ASKED)
        for answer in COMMITTED:
            self.assertRegex(answer.d_hash, r"^[0-9a-f]{16}$")
        self.assertEqual(len({answer.name for answer in COMMITTED}), len(COMMITTED))
        self.assertEqual(len({answer.d_hash for answer in COMMITTED}), len(COMMITTED))

    def test_it_is_written_as_it_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder, "again.json")
            known_answers.write(again, COMMITTED)
            self.assertEqual(again.read_text(), known_answers.FILE.read_text())

    def test_every_ring_goes_round_and_every_kind_of_input_is_there(self):
        """Nine stages of 64 are the longest ring; 148 SMs are to be busy more than twice, with pairs of CTAs too."""
        everybody = [answer for answer in COMMITTED if answer.variants == "all"]
        sizes = [rung.sizes_of(answer.shape) for answer in everybody]
        self.assertTrue(any(k > 2 * 9 * 64 for _, _, k in sizes))
        self.assertTrue(any(-(-m // 256) * -(-n // 256) > 2 * 148 // 2 for m, n, _ in sizes))
        self.assertEqual({answer.input for answer in COMMITTED}, {"random", "integer", "position"})
        self.assertEqual({answer.dtype for answer in everybody}, {"f16", "bf16"})
        self.assertIn(16, {k for _, _, k in sizes})  # step00's

    def test_the_hash_is_what_the_file_says(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "d.npy")
            m, n, k = rung.sizes_of(TILE.shape)
            for answer in (TILE, RANDOM_TILE):
                outcome = rung.execute(rung.Case("step00", m, n, k, answer.dtype, input=answer.input, seed=answer.seed), out=out)
                self.assertTrue(outcome.clean, outcome.text)
                self.assertEqual(fnv(compare.read_f32(out)[2]), answer.d_hash)

    def test_what_is_no_such_file(self):
        good = {"name": "x", "shape": "8x8x16", "dtype": "f16", "input": "random", "d_hash": 16 * "a"}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "answers.json")
            for text, part in (("{", "no known answers"), ("{}", "answers"), ('{"answers": []}', "no answers"),
                               (json.dumps({"answers": [{**good, "colour": "red"}]}), "colour"),
                               (json.dumps({"answers": [{"name": "x"}]}), "shape"),
                               (json.dumps({"answers": [{**good, "seed": "1"}]}), "seed of 'x' is '1'"),
                               (json.dumps({"answers": [{**good, "seed": -1}]}), "seed of 'x' is -1; expected 0"),
                               (json.dumps({"answers": [{**good, "d_hash": ""}]}), "d_hash of 'x' is ''; expected"),
                               (json.dumps({"answers": [{**good, "variants": "none"}]}), "variants of 'x' is 'none'"),
                               (json.dumps({"answers": [{**good, "builds": "botj"}]}), "builds of 'x' is 'botj'"),
                               (json.dumps({"answers": [{**good, "dtype": "f8"}]}), "dtype of 'x' is 'f8'"),
                               (json.dumps({"answers": [{**good, "input": "zeros"}]}), "input of 'x' is 'zeros'"),
                               (json.dumps({"answers": [{**good, "shape": "8x8"}]}), "shape of 'x' is '8x8'"),
                               (json.dumps({"answers": [{**good, "shape": "8x8x17"}]}), "multiples of 8"),
                               (json.dumps({"answers": [good, good]}), "two answers named 'x'")):
                path.write_text(text)
                with self.assertRaisesRegex(Refusal, part):
                    known_answers.read(path)
        with self.assertRaisesRegex(Refusal, "cannot be read"):
            known_answers.read(path)


class WithAnswers(Refusals):
    def setUp(self):
        home = tempfile.TemporaryDirectory(prefix="ladder-selfcheck-")
        self.addCleanup(home.cleanup)
        self.folder = Path(home.name)
        self.out = self.folder / "found.json"

    def answers(self, *answers):
        path = self.folder / "answers.json"
        known_answers.write(path, answers)
        return str(path)

    def found(self):
        return json.loads(self.out.read_text())


class OnTheEmulator(WithAnswers):
    def test_every_rung_and_variant(self):
        """One tile by all of them; the committed hashes hold."""
        done = ladder("selfcheck", "--on", "b200", "--answers", self.answers(TILE, RANDOM_TILE), cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads((self.folder / "selfcheck-emulated-b200.json").read_text())
        variants = list(listed_variants())
        self.assertEqual([(run["rung"], run["variant"]) for run in found["runs"]], [each for each in variants for _ in range(2)])
        self.assertEqual({run["rung"] for run in found["runs"]}, {path.parent.name for path in ROOT.glob("step*/main.cpp")})
        self.assertIn(f"{2 * len(variants)} of {2 * len(variants)} runs gave the predicted bits.", done.stdout)
        self.assertIn("this has tested the emulator, which made the known answers. It says nothing about a chip", done.stdout)
        self.assertNotIn("Please send", done.stdout)

    def test_all_answers(self):
        done = ladder("selfcheck", "step00", "step04", "--on", "b200", "--out", str(self.out))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = self.found()
        self.assertEqual((found["state"], found["running"], found["left_out"]), ("finished", None, {}))
        self.assertEqual(set(found["by_rung"]), {"step00_single_mma", "step04_swizzle"})
        names = [run["answer"] for run in found["runs"] if run["rung"] == "step00_single_mma"]
        self.assertEqual(names, ["one tile, position-coded, 128x256x16", "one tile, 128x256x16", "one row of eight, 1x8x16",
                                 "ragged in M and N, 300x520x16", "ragged in M and N, 300x520x16, unguarded",
                                 "more tiles than SMs, K = 16, 2570x3592x16"])
        runs = [run for run in found["runs"] if run["rung"] == "step04_swizzle"]
        self.assertEqual(len(runs), sum(1 + (answer.builds == "both") for answer in COMMITTED))
        self.assertEqual({run["known"] for run in runs}, {answer.d_hash for answer in COMMITTED})
        self.assertEqual(sum("--guard" in run["command"] for run in runs), len(COMMITTED))
        device = found["device"]
        self.assertEqual((device["emulated"], device["chip"], device["compute_capability"], device["sm_count"]),
                         (True, "b200", "10.0", 148))
        self.assertRegex(device["cuda_runtime"], r"^13\.\d+$")
        self.assertIn("Cuda compilation tools, release 13", " ".join(found["compilers"]))
        self.assertTrue(found["commit"] == "unknown" or re.fullmatch("[0-9a-f]{40}", found["commit"]))

    def test_a_wrong_answer_in_the_file(self):
        wrong = dataclasses.replace(TILE, d_hash="0123456789abcdef")
        answers = self.answers(wrong, RANDOM_TILE)
        done = ladder("selfcheck", "step01", "--on", "b200", "--answers", answers, "--out", str(self.out))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"bits of D {TILE.d_hash}, known 0123456789abcdef; --check finds nothing wrong with them", done.stdout)
        self.assertIn("the known answers do not belong to this build", done.stdout)
        self.assertIn("1 of 2 runs gave the predicted bits.", done.stdout)
        self.assertEqual(self.found()["by_rung"], {"step01_kloop": {"right": 1, "unlisted": 1}})

    def test_refused_before_anything_runs(self):
        for options, parts in ((["--out", str(self.folder / "nowhere" / "x.json")], ["nowhere", "No such file", "--out FILE"]),
                               (["--out", str(self.folder)], [str(self.folder), "is there and no file", "--out FILE"]),
                               (["--out", "/dev/full"], ["/dev/full: is there and no file"]), (["--out", ""], ["name of a file"]),
                               (["--answers", str(ROOT / "README.md")], ["README.md holds no known answers", "--record"]),
                               (["--time-limit", "0"], ["--time-limit 0"]), (["--time-limit", "nan"], ["--time-limit nan"]),
                               (["step99"], ["step99: no such rung"]), (["--on", "a100"], ["a100"]),
                               (["--record", "step01"], ["--record", "all rungs"]), (["--record", "--on", "gpu"], ["--record"])):
            self.assert_refused_in_one_line(ladder("selfcheck", *options, **({"LADDER_CHIP": "b200"})), *parts)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_chip_that_no_rung_has_code_for(self):
        if all(rung.where(name, "h200")[0] is None for name in build.rungs()):
            done = ladder("selfcheck", "--on", "h200", "--out", str(self.out))
            self.assert_refused_in_one_line(done, "nothing to check", "step00_single_mma has no code for that chip (wgmma)")
            self.assertFalse(self.out.exists())


class Inside(WithAnswers):
    """The command's parts, on rungs of our own."""

    def check(self, names, answers, on="b200", time_limit=20.0):
        """(exit status, everything said)."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            status = selfcheck.check(selfcheck.place(names, on), answers, self.out, time_limit)
        return status, said.getvalue()

    def rows(self, variant=None):
        return [row for row in self.found()["runs"] if variant in (None, row["variant"])]

    def verdicts(self, variant=None):
        return [row["verdict"] for row in self.rows(variant)]


class Faulty(Inside):
    """The faulty rung of tests/harness, which is right for integers alone, and f32 sums elsewhere; a variant for each mistake."""

    @classmethod
    def setUpClass(cls):
        cls.bin = tempfile.TemporaryDirectory(prefix="ladder-selfcheck-")
        cls.addClassCleanup(cls.bin.cleanup)
        Path(cls.bin.name, "bin").mkdir()
        Path(cls.bin.name, "bin", "step00_faulty").symlink_to(BUILD / "tests" / "faulty_rung")

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(build, "FOLDER", Path(self.bin.name))
        patch.start()
        self.addCleanup(patch.stop)

    def of(self, *variants, answers, time_limit=20.0):
        report, _ = rung.where("step00_faulty", "b200")
        self.assertLessEqual(set(variants), set(report["variants"]))
        with mock.patch.object(selfcheck, "where", lambda *_: ({**report, "variants": list(variants)}, "")):
            return self.check(["step00_faulty"], answers, time_limit=time_limit)

    INTEGERS = Answer("integers", "136x264x48", "f16", "integer")

    def test_verdicts(self):
        status, said = self.of("none", "after-d", "unwritten", "nan", "one-element", "k-tile", "wild", "too-large",
                               answers=[self.INTEGERS])
        self.assertEqual(status, 1)
        for variant, verdict, why in (("none", "right", None), ("after-d", "wrong", "past the end of D"),
                                      ("unwritten", "wrong", "never written"), ("nan", "wrong", "NaN"),
                                      ("one-element", "wrong", "1 of 35904 outputs compared differ"),
                                      ("k-tile", "wrong", "differ"), ("wild", "failed", "cudaErrorIllegalAddress"),
                                      ("too-large", "failed", "cudaErrorInvalidValue")):
            row, = self.rows(variant)
            self.assertEqual(row["verdict"], verdict, row)
            self.assertEqual(row["exit_status"], 0 if verdict == "right" else 1)
            if why:
                self.assertIn(why, row["why"])
                self.assertIn(row["command"], said)
        self.assertIn("K tile 2 (k = 32..47) is missing", str(self.rows("k-tile")[0]["check"]["pattern"]))
        self.assertIn("1 of 8 runs gave the predicted bits.", said)
        self.assertIn("First in the ladder that did not: step00_faulty after-d (integers, 136x264x48): wrong numbers", said)
        self.assertIn("no matter of rounding: a kernel is wrong, or the emulator is", said)

    def test_another_rule_of_rounding(self):
        """Its f32 sums are not a tensor core's; what no rounding can change is right."""
        random = Answer("random", "136x264x48", "f16", "random", d_hash="0123456789abcdef")
        status, said = self.of("none", answers=[self.INTEGERS, random])
        self.assertEqual((status, self.verdicts()), (1, ["right", "rounding"]))
        self.assertIn("rungs agree on them", said)
        self.assertIn("the emulator sums by another rule than docs/numerics.md predicts.", said)
        self.assertNotIn("a kernel is wrong", said)
        # A mistake beside it is still one.
        _, said = self.of("none", "k-tile", answers=[self.INTEGERS, random])
        self.assertNotIn("sums by another rule", said)
        self.assertIn("a kernel is wrong", said)

    def test_a_hang_ends_a_variant_and_nothing_else(self):
        later = dataclasses.replace(self.INTEGERS, name="later", builds="both")
        status, said = self.of("hang", "none", answers=[self.INTEGERS, later])
        self.assertEqual(status, 1)
        self.assertEqual(self.verdicts("hang"), ["hung", "skipped", "skipped"])
        self.assertEqual(self.verdicts("none"), ["right", "right", "right"])
        self.assertIn("hung before (integers, 136x264x48)", self.rows("hang")[1]["why"])
        self.assertIn("2 runs not tried: it hung before", said)
        self.assertIn("step00_faulty: 3 right, 1 hung, 2 skipped.", said)
        # The guard build names the place, once for all its threads.
        waits = [line for line in self.rows("hang")[0]["stderr"] if "the phase this line waits for never ended` failed" in line]
        self.assertEqual(len(waits), 1, waits)
        self.assertRegex(waits[0], r"^\./tests/harness/faulty_rung\.cu:\d+: mbarrier_wait_parity: .*\(32 threads\)$")
        self.assertNotIn(str(ROOT), self.out.read_text())

    def test_over_its_time(self):
        status, said = self.of("slow", answers=[self.INTEGERS], time_limit=0.5)
        self.assertEqual((status, self.verdicts()), (1, ["hung"]))
        self.assertIn("did not end within 0.5 s and was killed", self.rows()[0]["why"])
        self.assertIn("slow (integers, 136x264x48): hung.", said)


class Processes(Inside):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        patch = mock.patch.object(build, "FOLDER", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def script(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return name

    WHERE = """[ "$1" = --where ] && echo '{"device": {"emulated": true, "chip": "b200"}, "note": "", "fixed_k": null, """ \
            """"variants": ["plain"]}' && exit 0"""

    def test_one_that_does_not_end(self):
        name = self.script("step00_endless", self.WHERE + "\nexec sleep 60")
        with mock.patch.object(selfcheck, "AROUND_KERNEL", 0.2):
            status, said = self.check([name], [TILE, LARGER], time_limit=0.1)
        self.assertEqual((status, self.verdicts()), (1, ["hung", "skipped", "skipped"]))
        self.assertIn("it has not ended after 0.3 s", said)

    def test_one_that_cannot_be_killed(self):
        """As when it waits for a driver that does not answer: it is left behind, and nothing else is started."""
        name = self.script("step00_endless", self.WHERE + "\nexec sleep 3")
        other = self.script("step01_endless", self.WHERE + f"\ntouch {self.folder}/started")
        with mock.patch.object(selfcheck, "AROUND_KERNEL", 0.1), mock.patch.object(rung, "KILL_SECONDS", 0.1), \
                mock.patch.object(rung.os, "kill", lambda *_: None):
            status, said = self.check([name, other], [TILE], time_limit=0.1)
        self.assertEqual((status, self.verdicts()), (1, ["hung", "skipped"]))
        self.assertIn("step00_endless plain cannot be killed; restart the machine", said)
        self.assertFalse((self.folder / "started").exists())

    def test_a_driver_that_does_not_answer(self):
        name = self.script("step00_endless", "exec sleep 60")
        with mock.patch.object(selfcheck, "where", lambda name, on: rung.where(name, on, timeout=0.2)), \
                self.assertRaisesRegex(Refusal, "step00_endless --where: it has not ended after 0.2 s.*driver"):
            self.check([name], [TILE])

    def test_one_that_says_nothing(self):
        name = self.script("step00_silent", self.WHERE + "\nexit 3")
        status, said = self.check([name], [TILE])
        self.assertEqual((status, self.verdicts()), (1, ["failed"]))
        self.assertIn("exit status 3: it said nothing", said)


class Gpu(Inside):
    """A machine with a GPU, made of two functions: what a rung says of it, and what a run gives."""
    NAMES = ["step00_single_mma", "step01_kloop"]

    def setUp(self):
        super().setUp()
        self.fails, self.ran = {}, []
        self.places = {name: self.real("NVIDIA B200", "10.0", "plain", "other") for name in self.NAMES}
        for patch in (mock.patch.object(selfcheck, "where", lambda name, on: (self.places[name], "")),
                      mock.patch.object(selfcheck, "execute", self.execute)):
            patch.start()
            self.addCleanup(patch.stop)

    @staticmethod
    def real(name, capability, *variants):
        device = {"emulated": False, "name": name, "compute_capability": capability, "cuda_driver": "13.0"}
        return {"device": device, "note": "", "fixed_k": None, "variants": list(variants)}

    @staticmethod
    def emulated(note, *variants):
        return {"device": {"emulated": True, "chip": "b200"}, "note": note, "fixed_k": None, "variants": list(variants)}

    def execute(self, case, timeout):
        self.ran.append(case)
        answer = next(answer for answer in (TILE, LARGER, FIRST_ONLY) if answer.shape == case.shape)
        how = self.fails.get((case.rung, case.variant, case.shape)) or self.fails.get(len(self.ran))
        if how is KeyboardInterrupt:
            raise how
        if how:
            return rung.Outcome(1, {}, how)
        device = {**self.places[case.rung]["device"], "sm_count": 148, "cuda_runtime": "13.0"}
        return rung.Outcome(0, {"good": True, "check": {"passed": True}, "d_hash": answer.d_hash, "device": device}, "")

    def test_all_as_predicted(self):
        status, said = self.check(self.NAMES, [TILE, LARGER, FIRST_ONLY], on="auto")
        self.assertEqual(status, 0, said)
        self.assertIn("On NVIDIA B200.", said)
        self.assertIn("Please send", said)
        self.assertNotIn("tested the emulator", said)
        self.assertEqual({case.on for case in self.ran}, {"gpu"})
        found = self.found()
        self.assertEqual(found["device"]["sm_count"], 148)
        self.assertIsNotNone(found["driver"])
        # Guarded first, then as it ships; of the other variants, no more than all are asked.
        first = [(case.variant, case.shape, case.guard) for case in self.ran if case.rung == self.NAMES[0]]
        self.assertEqual(first, [("plain", TILE.shape, True), ("plain", LARGER.shape, True), ("plain", LARGER.shape, False),
                                 ("plain", FIRST_ONLY.shape, True), ("other", TILE.shape, True), ("other", LARGER.shape, True),
                                 ("other", LARGER.shape, False)])

    def test_what_cannot_do_one_tile_is_not_tried_further(self):
        self.fails[self.NAMES[0], "plain", TILE.shape] = "cudaErrorIllegalAddress"
        self.fails[self.NAMES[1], "plain", LARGER.shape] = "cudaErrorIllegalAddress"
        status, said = self.check(self.NAMES, [TILE, LARGER, FIRST_ONLY])
        self.assertEqual(status, 1)
        self.assertEqual(self.verdicts("plain"), ["failed", *3 * ["skipped"], "right", "failed", "failed", "right"])
        self.assertEqual(set(self.verdicts("other")), {"right"})
        self.assertIn("it cannot do one tile", said)
        self.assertIn("does what this chip does not allow", said)
        self.assertIn("As predicted throughout: no rung.", said)

    def test_a_gpu_that_is_lost(self):
        """After a crash the first good run is tried again; where even that fails, nothing more is started."""
        self.fails[3] = self.fails[4] = "cudaErrorUnknown"
        status, said = self.check(self.NAMES, [TILE, LARGER])
        self.assertEqual((status, self.verdicts()), (1, ["right", "right", "failed"] + 9 * ["skipped"]))
        self.assertEqual([case.shape for case in self.ran], [TILE.shape, LARGER.shape, LARGER.shape, TILE.shape])
        self.assertIn("since step00_single_mma plain, step00_single_mma fails where it was right before; restart", said)

    def test_a_crash_that_the_gpu_survives(self):
        self.fails[2] = "cudaErrorUnknown"
        _, said = self.check(self.NAMES, [TILE, LARGER])
        self.assertEqual(self.verdicts(), ["right", "failed"] + 10 * ["right"])
        self.assertIn("As predicted throughout: step01_kloop.\nstep00_single_mma: 5 right, 1 failed.", said)

    def test_rungs_that_round_in_different_ways(self):
        """Right to rounding, each with bits of its own: then it is not the chip's rule alone. Nothing exact was asked."""
        random = dataclasses.replace(TILE, input="random")

        def execute(case, timeout):
            check = {"passed": False, "rounding_only": True, "summary": "so and so many differ"}
            return rung.Outcome(1, {"good": False, "check": check, "d_hash": case.rung, "device": {}}, "")
        with mock.patch.object(selfcheck, "execute", execute):
            status, said = self.check(self.NAMES, [random])
        self.assertEqual((status, set(self.verdicts())), (1, {"rounding"}))
        self.assertIn("rungs do not agree on them", said)
        self.assertNotIn("another rule", said)

    def test_somebody_has_enough(self):
        self.fails[4] = KeyboardInterrupt
        status, said = self.check(self.NAMES, [TILE, LARGER])
        self.assertEqual((status, self.verdicts()), (130, 3 * ["right"]))
        self.assertEqual(self.found()["state"], "interrupted")
        self.assertIn("Interrupted", said)

    def test_ended_from_outside(self):
        out = self.folder / "out.json"
        process = subprocess.Popen([sys.executable, str(ROOT / "ladder"), "selfcheck", "--on", "b200", "--out", str(out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end and not (out.exists() and json.loads(out.read_text())["runs"]):
                time.sleep(.05)
            process.terminate()
            self.assertEqual(process.wait(30), 130)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(json.loads(out.read_text())["state"], "interrupted")

    def test_the_run_that_takes_the_machine_with_it_is_on_file(self):
        seen = []

        def execute(case, timeout):
            seen.append((self.found()["running"], case.command_line(), len(self.found()["runs"])))
            return self.execute(case, timeout)
        with mock.patch.object(selfcheck, "execute", execute):
            self.check(self.NAMES[:1], [TILE])
        self.assertEqual([(running, rows) for running, _, rows in seen], [(line, at) for at, (_, line, _) in enumerate(seen)])

    def test_rungs_without_code_for_it_are_left_out(self):
        """A Hopper GPU, and one rung that has a twin for it."""
        self.places[self.NAMES[0]] = self.real("NVIDIA H200", "9.0", "twin")
        note = "NVIDIA H200 (compute capability 9.0) has wgmma and step01_kloop has code for tcgen05 only: emulating a B200"
        self.places[self.NAMES[1]] = self.emulated(note, "plain")
        status, said = self.check(self.NAMES, [TILE], on="auto")
        self.assertEqual(status, 0, said)
        self.assertIn("On NVIDIA H200.", said)
        self.assertIn("step01_kloop is left out: NVIDIA H200", said)
        self.assertEqual([(case.rung, case.variant, case.on) for case in self.ran], [(self.NAMES[0], "twin", "gpu")])
        self.assertEqual(list(self.found()["left_out"]), [self.NAMES[1]])

    def test_a_gpu_that_no_rung_runs_on(self):
        """Then a B200 is emulated, as the rungs do, and that is said."""
        note = "NVIDIA H200 (compute capability 9.0) has wgmma and step00_single_mma has code for tcgen05 only: emulating a B200"
        for name in self.NAMES:
            self.places[name] = self.emulated(note, "plain")
        status, said = self.check(self.NAMES, [TILE], on="auto")
        self.assertEqual(status, 0)
        self.assertIn(note, said)
        self.assertIn("this has tested the emulator", said)
        self.assertEqual({case.on for case in self.ran}, {"b200"})


class Record(Inside):
    """Answers are written where all agree, and only there."""
    NAMES = ["step00_single_mma", "step01_kloop"]

    def setUp(self):
        super().setUp()
        self.spoilt = None
        place = {"device": {"emulated": True, "chip": "b200"}, "note": "", "fixed_k": None, "variants": ["plain", "other"]}
        hashes = {(answer.shape, answer.dtype, answer.input): answer.d_hash for answer in COMMITTED}

        def execute(case, timeout):
            d_hash = hashes[case.shape, case.dtype, case.input]
            passed = True
            if (case.rung, case.variant, case.guard) == ("step01_kloop", "other", False) and self.spoilt:
                d_hash, passed = ("f00d", True) if self.spoilt == "bits" else (d_hash, False)
            return rung.Outcome(0 if passed else 1, {"good": passed, "check": {"passed": passed}, "d_hash": d_hash,
                                                     "device": place["device"]}, "")

        def where(name, on):
            return {**place, "fixed_k": 16 if name.startswith("step00") else None}, ""
        for patch in (mock.patch.object(selfcheck, "where", where), mock.patch.object(selfcheck, "execute", execute),
                      mock.patch.object(build, "rungs", lambda: self.NAMES)):
            patch.start()
            self.addCleanup(patch.stop)

    def record(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            return selfcheck.record(self.out, 20.0), said.getvalue()

    def test_agreed(self):
        status, said = self.record()
        self.assertEqual(status, 0, said)
        self.assertEqual(self.out.read_text(), known_answers.FILE.read_text())

    def test_not_agreed(self):
        for self.spoilt, part in (("bits", "the bits of D differ: "), ("check", "step01_kloop other")):
            self.out.write_text("as it was")
            status, said = self.record()
            self.assertEqual((status, self.out.read_text()), (1, "as it was"))
            self.assertIn(part, said)


if __name__ == "__main__":
    unittest.main()
