"""`ladder check`: what it says of rungs and of programs, and how it ends."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import BUILD, Refusals, ladder
from tools import check

MUSEUM = BUILD / "tests" / "museum"
SCHEDULES = "earliest, latest, random:1"


class Check(Refusals):
    def check(self, status, *arguments, **environment):
        """Its lines on stdout."""
        done = ladder("check", *arguments, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def exhibit(self, status, name, twin, *options):
        return self.check(status, *options, MUSEUM / name, twin)

    def test_help(self):
        text = "\n".join(self.check(0, "--help"))
        for option in ("--chip", "--schedule ", "--schedules", "--seed", "--threads", "--shape", "--strict", "--json", "--timeout"):
            self.assertIn(option, text)
        self.assertNotIn("--counters", text)

    def test_a_rung(self):
        self.assertRegex(self.check(0, "step05")[-1], rf"^step05_epilogue: clean \({SCHEDULES}; .* s\)$")

    def test_a_variant(self):
        lines = self.check(0, "--schedules", "latest,random:7", "--shape", "128x256x64", "step06:2x1")
        self.assertRegex("\n".join(lines), r"^step06_multicast:2x1: clean \(latest, random:7; .* s\)$")

    def test_settings(self):
        lines = self.check(0, "--schedule", "latest", "step07:clusters=2,accumulators=1")
        self.assertRegex("\n".join(lines), r"^step07_persistent:clusters=2,accumulators=1: clean \(latest; .* s\)$")

    def test_twins(self):
        lines = self.check(0, "--chip", "h200", "--schedule", "latest", "step07:scheduler=counter,ctas=2")
        self.assertRegex("\n".join(lines), r"^step07_persistent:scheduler=counter,ctas=2: clean \(latest; .* s\)$")

    def test_all_variants_of_the_chip(self):
        options = mock.Mock(subject=None, shape=None, schedule=None, seed=None, threads=None, strict=False, counters=None)
        for chip, has, has_not in (("b200", "step07_persistent:pair", "step03_warpspec:setmaxnreg"),
                                   ("h200", "step03_warpspec:setmaxnreg", "step07_persistent:pair")):
            options.chip = chip
            names = [subject.name for subject in check.subjects(options)]
            self.assertIn(has, names)
            self.assertNotIn(has_not, names)

    def test_answers_that_are_handed_on(self):
        """Rungs are on few SMs, where hardly a tile's cluster starts: each answer's place is written, read and written again."""
        for variant in ("scheduler=clc", "scheduler=clc,cta-group=1", "scheduler=clc,cta-group=1,multicast=on"):
            self.assertIn("clean", self.check(0, f"step07:{variant},tile-n=128")[-1])

    def test_rungs_are_on_few_sms(self):
        options = mock.Mock(chip="b200", schedule=None, seed=None, threads=None, strict=False, counters=None)
        with mock.patch.dict(os.environ):
            os.environ.pop("LADDER_SMS", None)
            self.assertEqual(check.rung_subject("step07_persistent", "", "8x8x8", options).environment["LADDER_SMS"], "4")
            os.environ["LADDER_SMS"] = "20"
            self.assertEqual(check.rung_subject("step07_persistent", "", "8x8x8", options).environment["LADDER_SMS"], "20")

    def test_an_exhibit(self):
        lines = self.exhibit(1, "hopper_store_without_proxy_fence", "broken")
        self.assertEqual(lines[0], "========= Error: store_tiles: accessed by threads and then through the async proxy without a "
                                   "proxy fence [proxy-fence]")
        self.assertRegex(lines[1], r"^=========     shared memory: .* bytes .* tile ")
        self.assertRegex(lines[2], r"^=========     TMA store at museum/hopper_store_without_proxy_fence.cu:\d+ \(in ptx/bulk.cuh:\d+\)$")
        self.assertRegex(lines[4], r"^=========     store at museum/hopper_store_without_proxy_fence.cu:\d+$")
        self.assertRegex(lines[-2], r"^=========     \d+ times in all$")  # its result is right
        self.assertRegex(lines[-1], rf"^hopper_store_without_proxy_fence broken: 1 error \({SCHEDULES}; .* s\)$")

    def test_its_fixed_twin(self):
        lines = self.exhibit(0, "hopper_store_without_proxy_fence", "fixed")
        self.assertRegex("\n".join(lines), rf"^hopper_store_without_proxy_fence fixed: clean \({SCHEDULES}; .* s\)$")

    def test_a_program_of_the_current_folder(self):
        done = ladder("check", "hopper_read_without_wait", "fixed", cwd=MUSEUM)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_one_race_is_told_once_whichever_way_it_goes(self):
        text = "\n".join(self.exhibit(1, "hopper_mailbox_overwritten", "broken"))
        self.assertEqual(text.count("========= Error"), 1, text)
        self.assertIn("fix: a barrier of both threads between the two", text)

    def test_memory_that_nothing_has_written(self):
        lines = self.exhibit(1, "hopper_uninitialised_tail", "broken")
        self.assertRegex(lines[0], r"^========= Error: .* \[uninitialised\]$")
        self.assertIn("What the kernel writes to global memory changes with it.", "\n".join(lines))

    def test_whether_unwritten_memory_reaches_an_output(self):
        class Subject:
            name = "a program"

            def __init__(self, *fingerprints):
                self.fingerprints = list(fingerprints)

            def run(self, schedule, timeout, other_fill=False):
                finding = {"rule": "uninitialised", "rank": "Note", "kernel": "k", "sides": [], "explanation": "", "count": 1,
                           "consequences": 0, "both_ways": "", "schedule": schedule, "title": "", "object": "", "fix": "", "source": ""}
                outputs = [{"kernel": "k", "fingerprint": self.fingerprints.pop(0)}]
                return None, {"findings": [finding], "remarks": [], "outputs": outputs}

        for fingerprints, rank in ((("a", "a", "b"), "Error"), (("a", "a", "a"), "Note"), (("a", "c", "b"), "Note")):
            result = check.Result(Subject(*fingerprints), ["earliest"])
            result.add("earliest", 1)
            self.assertTrue(result.reads_unwritten)
            result.follow_unwritten(1)
            self.assertEqual([one["rank"] for _, one in result.found], [rank], fingerprints)

    def test_the_chip_is_the_programs(self):
        for name in ("hopper_read_without_wait", "blackwell_accumulator_without_wait"):
            self.assertIn("clean", self.exhibit(0, name, "fixed", "--schedule", "latest")[-1])
        self.assert_refused_in_one_line(ladder("check", "--chip", "b200", MUSEUM / "hopper_read_without_wait", "fixed"),
                                        "has no PTX for a B200")
        self.assert_refused_in_one_line(ladder("check", MUSEUM / "hopper_read_without_wait", "fixed", LADDER_CHIP="b200"),
                                        "has no PTX for a B200")

    def test_a_rule_is_no_failure_but_strictly(self):
        for status, options in (0, []), (1, ["--strict"]):
            lines = self.exhibit(status, "blackwell_no_tcgen05_fence", "broken", *options)
            self.assertTrue(lines[0].startswith("========= Rule: multiply: "), lines[0])
            self.assertIn("broken: 1 rule (", lines[-1])

    def test_only_under_some_schedules(self):
        text = "\n".join(self.exhibit(1, "hopper_too_few_bytes", "broken"))
        self.assertRegex(text, r"\[barrier-bytes\](\n=========  .*)*\n=========     only under latest, random:1; \d+ times in all\n")
        # What came under more schedules is likelier to be the mistake.
        self.assertLess(text.index("[barrier-bytes]"), text.index("[read-too-early]"))
        self.assertIn("\n    under latest, random:1 it ended with status 1: result: wrong (", text)
        self.assertIn("\nhopper_too_few_bytes broken: 2 errors, failed (", text)

    def test_json(self):
        done = ladder("check", "--json", "--threads", "1", MUSEUM / "hopper_read_without_wait", "broken")
        self.assertEqual(done.returncode, 1, done.stderr)
        subject, = json.loads(done.stdout)
        self.assertEqual((subject["subject"], subject["good"], subject["remarks"]), ("hopper_read_without_wait broken", False, []))
        finding, = subject["findings"]
        self.assertEqual((finding["rule"], finding["rank"], finding["kernel"]), ("read-too-early", "Error", "copy_tile"))
        self.assertEqual(finding["schedules"], subject["schedules"])
        self.assertGreater(finding["count"], 1)
        for side, what, instruction in zip(finding["sides"], ("load", "TMA load"), ("ld.shared.u32", "cp.async.bulk.")):
            self.assertEqual(side["what"], what)
            self.assertTrue(side["instruction"].startswith(instruction), side)
            self.assertRegex(side["where"], r"^museum/hopper_read_without_wait.cu:\d+")
        failure, = subject["failures"]
        self.assertEqual(failure["schedules"], ["latest", "random:1"])
        self.assertRegex(failure["how"], r"^ended with status 1: result: wrong ")
        done = ladder("check", "--json", "--schedule", "earliest", MUSEUM / "hopper_read_without_wait", "fixed")
        self.assertEqual(done.returncode, 0, done.stderr)
        subject, = json.loads(done.stdout)
        self.assertEqual((subject["schedules"], subject["findings"], subject["good"]), (["earliest"], [], True))

    def test_refusals(self):
        program = MUSEUM / "hopper_read_without_wait"
        for arguments, parts in (
                (["--schedules", "earliest,sometimes", "step05"], ["--schedules earliest,sometimes: expected earliest, latest, "]),
                (["--schedules", "earliest,", "step05"], ["--schedules earliest,: expected earliest"]),
                (["--schedules", "", "step05"], ["--schedules : expected earliest"]),
                (["--schedules", "earliest", "--schedule", "latest", "step05"], ["--schedules lists them all"]),
                (["--schedules", "earliest", "--seed", "1", "step05"], ["--schedules lists them all"]),
                (["--schedule", "sometimes", "step05"], ["--schedule sometimes: expected earliest, latest"]),
                (["--shape", "128x256x64", program, "fixed"], ["--shape is for rungs"]),
                (["--shape", "128x256", "step05"], ["--shape 128x256: expected MxNxK"]),
                (["--timeout", "0", "step05"], ["--timeout 0: expected seconds, more than 0"]),
                (["--timeout", "soon", "step05"], ["--timeout"]),
                (["step05", "--check"], ["--check: a rung is checked by name and --shape"]),
                (["step06:9x9"], ["--variant 9x9: step06_multicast has no such variant; it has 2x2, "]),
                (["step07:walk=0"], ["walk=0: must be auto|1..32."]),
                (["step99"], ["step99: no such rung"]),
                (["--chip", "v100", "step05"], ["--chip v100: no such chip"]),
                (["./no_such_program"], ["./no_such_program: no such file"]),
                (["no_such_program"], ["no_such_program: no such file"])):
            self.assert_refused_in_one_line(ladder("check", *arguments), *parts)

    def test_a_program_that_fails_by_itself(self):
        lines = self.exhibit(1, "hopper_tile_not_aligned", "broken")  # no more than a note, and a wrong result
        self.assertRegex(lines[0], r"^========= Note: store_tile: .* \[swizzle-alignment\]$")
        self.assertRegex(lines[-2], rf"^    under {SCHEDULES} it ended with status 1: result: wrong ")
        self.assertIn("broken: 1 note, failed (", lines[-1])

    def test_a_program_that_launches_nothing(self):
        lines = self.check(1, "true")
        self.assertRegex("\n".join(lines), r"^true: no kernel ran, nothing was checked \(.*\)$")
        lines = self.check(1, MUSEUM / "hopper_read_without_wait", "bent")  # it ends with its own usage
        self.assertRegex(lines[0], rf"^    under {SCHEDULES} it ended with status 2: ")

    def test_a_program_that_dies(self):
        lines = self.check(1, "sh", "-c", "kill -ABRT $$")
        self.assertEqual(lines[0], f"    under {SCHEDULES} it was ended by SIGABRT")

    def test_a_hang_is_told_once(self):
        text = "\n".join(self.exhibit(1, "hopper_producer_first_parity", "broken"))
        self.assertTrue(text.startswith("========= Error: copy_tiles: hangs: no thread of the block can go on [hang]\n"), text)
        self.assertEqual(text.count("hangs: no thread of the block can go on"), 1)
        self.assertIn("waits for tile_empty[0]", text)
        self.assertRegex(text, rf"\nhopper_producer_first_parity broken: 1 error, stopped by the emulator \({SCHEDULES}; .* s\)$")

    def test_a_fault_is_a_finding(self):
        text = "\n".join(self.exhibit(1, "blackwell_tmem_leaked", "broken"))
        self.assertRegex(text, r"^========= Error: \w+: CTA ends with tensor memory still allocated \[tensor-memory-leak\]\n"
                               r"=========     the CTA ends with 32 columns of tensor memory still allocated: ")
        self.assertRegex(text, r"\nblackwell_tmem_leaked broken: 1 error, stopped by the emulator \(")
        done = ladder("check", "--json", MUSEUM / "blackwell_tmem_leaked", "broken")
        self.assertEqual(done.returncode, 1, done.stderr)
        subject, = json.loads(done.stdout)
        finding, = subject["findings"]
        self.assertEqual((finding["rule"], finding["rank"], finding["schedules"]), ("tensor-memory-leak", "Error", subject["schedules"]))
        self.assertIn("32 columns of tensor memory still allocated", finding["explanation"])
        self.assertRegex(finding["source"], r"^PTX ISA, tcgen05.dealloc")
        side, = finding["sides"]
        self.assertRegex(side["where"], r"^museum/blackwell_tmem_leaked.cu:\d+")
        self.assertRegex(side["who"], r"^block \(0,0,0\), warp \d")

    def test_a_hang_in_json(self):
        done = ladder("check", "--json", "--schedule", "latest", MUSEUM / "hopper_producer_first_parity", "broken")
        subject, = json.loads(done.stdout)
        finding, = subject["findings"]
        self.assertEqual((finding["rule"], finding["rank"], finding["kernel"]), ("hang", "Error", "copy_tiles"))
        self.assertEqual([side["what"] for side in finding["sides"]], ["waits for tile_empty[0]"])
        self.assertIn("tile_empty[0]", finding["report"])

    def test_what_ended_a_launch_comes_after_what_may_have_brought_it_about(self):
        lines = self.exhibit(1, "blackwell_tmem_freed_under_readers", "broken")
        heads = [line for line in lines if line.startswith("========= Error: ")]
        self.assertRegex(heads[0], r"\[overwrite-too-early\]$")
        self.assertRegex(heads[-1], r"\[tensor-memory-unallocated\]$")

    def test_notes_of_the_emulator(self):
        lines = self.exhibit(1, "blackwell_accumulator_without_wait", "broken")
        notes = [line for line in lines if line.startswith("========= Note: multiply at museum/")]
        self.assertEqual(len(notes), 1, notes)
        self.assertRegex(notes[0], r"tcgen05.ld got NaN from tensor memory .*; only under latest$")
        self.assertIn("broken: 1 error, 1 note, failed (", lines[-1])

    def test_notes_of_the_emulator_are_kept(self):
        program = MUSEUM / "blackwell_accumulator_without_wait"
        done = ladder("check", "--json", "--schedule", "latest", program, "broken")
        remark, = json.loads(done.stdout)[0]["remarks"]
        self.assertIn("tcgen05.ld got NaN from tensor memory", remark["text"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "findings.json")
            ladder("emulate", program, "broken", LADDER_CHIP="b200", LADDER_CHECK="1", LADDER_CHECK_FILE=path, LADDER_SCHEDULE="latest")
            kept = json.loads(path.read_text())["remarks"]
        self.assertEqual([one["text"] for one in kept], [remark["text"]])
        self.assertGreater(kept[0]["count"], 0)

    def test_time_that_is_over(self):
        lines = self.check(1, "--timeout", "0.5", "--schedule", "latest", MUSEUM / "hopper_read_without_wait", "fixed", "--runs", "99999")
        self.assertEqual(lines[0], "    under latest it has not ended after 0.5 s; --timeout SECONDS gives it more")
        self.assertIn("--runs 99999: failed (latest; ", lines[-1])
        # With all that it has started.
        begin = os.times().elapsed
        self.check(1, "--timeout", "0.5", "--schedule", "latest", "sh", "-c", "sleep 20; true")
        self.assertLess(os.times().elapsed - begin, 10)


class Merging(unittest.TestCase):
    def finding(self, rule, line, **changes):
        return {"rule": rule, "kernel": "k", "rank": "Error", "count": 1, "consequences": 0, "both_ways": "", "schedule": "latest",
                "sides": [self.side("load", line)], **changes}

    def side(self, what, line, *also):
        return {"what": what, "where": f"k.cu:{line} (in w.cuh:7)", "who": "somebody", "instruction": "ld",
                "also": [f"k.cu:{other} (in w.cuh:7)" for other in also]}

    def test_findings(self):
        found = [("earliest", self.finding("a", 1, rank="Rule")), ("earliest", self.finding("a", 2)),
                 ("latest", self.finding("a", 1, count=3, consequences=1)), ("latest", self.finding("b", 9, rank="Note"))]
        self.assertEqual([(one["rule"], one["sides"][0]["where"].split()[0], one["rank"], one["count"], one["consequences"], one["schedules"])
                          for one in check.merged(found)],
                         [("a", "k.cu:1", "Error", 4, 1, ["earliest", "latest"]), ("a", "k.cu:2", "Error", 1, 0, ["earliest"]),
                          ("b", "k.cu:9", "Note", 1, 0, ["latest"])])

    def test_lines_of_one_cause(self):
        """Each schedule may have met another of them first."""
        def race(load, store, *also, **changes):
            return self.finding("a", 0, sides=[self.side("load", load, *also), self.side("store", store)], title="t", object="o",
                                explanation="e", fix="f", source="s", **changes)
        found = [("earliest", race(5, 1, 12)), ("latest", race(12, 1, 5, 100)), ("latest", race(7, 2)), ("latest", race(3, 1, rank="Rule"))]
        merged = check.merged(found)
        self.assertEqual([[(one["where"].split()[0], [place.split()[0] for place in one["also"]]) for one in finding["sides"]]
                          for finding in merged],
                         [[("k.cu:5", ["k.cu:12", "k.cu:100"]), ("k.cu:1", [])], [("k.cu:7", []), ("k.cu:2", [])],
                          [("k.cu:3", []), ("k.cu:1", [])]])
        self.assertEqual([finding["count"] for finding in merged], [2, 1, 1])
        lines = check.text_of(merged[0], ["earliest", "latest"]).split("\n")
        self.assertEqual(lines[4], "=========         also: line 12, 100")
        elsewhere = {"where": "k.cu:5", "also": ["k.cu:9", "x.cu:4 (in w.cuh:7)"]}
        self.assertEqual(check.also_text(elsewhere), "line 9, x.cu:4")
        # What came with the first schedule is left as it was.
        self.assertEqual(found[0][1]["sides"][0]["also"], ["k.cu:12 (in w.cuh:7)"])

    def test_what_follows_from_an_error_of_another_schedule(self):
        error = self.finding("a", 0, sides=[self.side("load", 5, 6), self.side("store", 1)])
        rule = self.finding("b", 6, rank="Rule")
        merged = check.merged([("earliest", error), ("latest", rule), ("latest", self.finding("b", 7, rank="Rule"))])
        self.assertEqual([(one["rule"], one["consequences"], one["sides"][0]["where"].split()[0]) for one in merged],
                         [("a", 1, "k.cu:5"), ("b", 0, "k.cu:7")])

    def test_one_race_seen_from_both_sides(self):
        read, overwrite = self.finding("read-too-early", 7), self.finding("overwrite-too-early", 5)
        read["sides"].append(self.side("store", 5))
        overwrite["sides"] = [self.side("store", 5), self.side("load", 7)]
        one, = check.merged([("earliest", read), ("latest", overwrite), ("latest", overwrite)])
        self.assertEqual((one["rule"], one["count"], one["schedules"]), ("read-too-early", 3, ["earliest", "latest"]))
        self.assertEqual(one["both_ways"], check.SEEN_BOTH_WAYS)
        overwrite["sides"] = [self.side("store", 5), self.side("load", 9)]
        self.assertEqual(len(check.merged([("earliest", read), ("latest", overwrite)])), 2)

    def test_a_kernel_without_source_lines(self):
        def said(where):
            result = check.Result(None, ["latest"])
            finding = self.finding("read-too-early", 7, title="", object="", explanation="", both_ways="", fix="", source="")
            finding["sides"][0]["where"] = where
            result.found.append(("latest", finding))
            return "\n".join(result.lines())

        self.assertIn("built with -lineinfo", said("PTX line 7 (no source lines: build with -lineinfo)"))
        self.assertNotIn("-lineinfo", said("k.cu:7 (in w.cuh:7)"))

    def test_what_ended_a_launch(self):
        """The same place is the same fault, whatever it waited for; behind the errors that may have brought it about."""
        def hang(line, what):
            return self.finding("hang", line, report="r", sides=[self.side(what, line)])
        both = hang(3, "waits for full[1]")
        both["sides"] *= 2  # two CTAs stand there
        found = [("earliest", hang(3, "waits for full[0]")), ("latest", both), ("latest", hang(4, "runs")),
                 ("latest", self.finding("a", 1))]
        self.assertEqual([(one["rule"], one["sides"][0]["where"].split()[0], one["schedules"]) for one in check.merged(found)],
                         [("a", "k.cu:1", ["latest"]), ("hang", "k.cu:3", ["earliest", "latest"]), ("hang", "k.cu:4", ["latest"])])

    def test_texts(self):
        """Cycles, blocks and addresses may differ, lines may not."""
        found = [("earliest", "warp 1 at k.cu:12, cycle 100, 0x40"), ("latest", "warp 2 at k.cu:12, cycle 90, 0x80"),
                 ("random:1", "warp 1 at k.cu:13, cycle 100, 0x40"), ("random:2", "no number")]
        self.assertEqual(check.first_of(found),
                         [("warp 1 at k.cu:12, cycle 100, 0x40", ["earliest", "latest"]),
                          ("warp 1 at k.cu:13, cycle 100, 0x40", ["random:1"]), ("no number", ["random:2"])])


if __name__ == "__main__":
    unittest.main()
