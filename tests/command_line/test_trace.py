"""`ladder trace`: both files say what the run's counters say, slices nest, and nothing depends on host threads."""

import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

from support import ROOT, Refusals, ladder

sys.path.insert(0, str(ROOT))
from tools import build, trace, trace_events, trace_picture  # noqa: E402
from tools.terminal import Refusal  # noqa: E402

VIRTUAL = "virtual time (cycles of the emulator, no chip's)"
SCHEDULES = ["earliest", "latest", "random:1"]
# The kind of slice -> what counts its operations.
COUNTED = {"load": "tma_loads", "mma": "mmas", "commit": "commits", "store": "tma_stores", "tmem_load": "tmem_loads",
           "tmem_store": "tmem_stores"}


def accumulators(name):
    return ["accumulator_full[0]", "accumulator_full[1]"] if name > "step07" else ["accumulator_full"]


class Rungs(unittest.TestCase):
    """Every rung under every schedule, with the shape that the command takes."""

    @classmethod
    def setUpClass(cls):
        cls.cases = [trace.case_of(name, trace.default_shape(name), schedule, trace.default_variant(name))
                     for name in build.rungs() for schedule in SCHEDULES]
        cls.runs = [(case.rung, case.schedule, *trace.traced(case)) for case in cls.cases]
        for name, schedule, outcome, _ in cls.runs:
            assert outcome.good, f"{name}, {schedule}: {outcome.text}"

    def slices(self, launch):
        events = json.loads(trace_events.json_text(launch.ctas, {}))["traceEvents"]
        return [event for event in events if event["ph"] == "X" and event["cat"] != "about"], events

    def test_everything_that_was_counted_is_there(self):
        for name, schedule, outcome, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                slices, _ = self.slices(launch)
                for kind, counter in COUNTED.items():
                    # A multicast load and commit show in several CTAs.
                    operations = {each["args"]["operation"] for each in slices if each["cat"] == kind}
                    self.assertEqual(len(operations), outcome.counters["total"][counter], kind)
                waits = sum(each["cat"] == "wait" for each in slices)
                self.assertEqual(waits, outcome.counters["total"]["parked_waits"])

    def test_slices_nest(self):
        for name, schedule, _, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                tracks = defaultdict(list)
                for each in self.slices(launch)[0]:
                    self.assertGreaterEqual(each["dur"], 0)
                    tracks[each["pid"], each["tid"]].append((each["ts"], -each["dur"]))
                for track in tracks.values():
                    open_ends = []
                    for begin, length in sorted(track):
                        while open_ends and open_ends[-1] <= begin:
                            open_ends.pop()
                        self.assertTrue(not open_ends or begin - length <= open_ends[-1], track)
                        open_ends.append(begin - length)

    def test_tracks_have_names(self):
        for name, schedule, _, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                slices, events = self.slices(launch)
                names = {(each["pid"], each["tid"]): each["args"]["name"] for each in events if each["name"] == "thread_name"}
                self.assertTrue(all((each["pid"], each["tid"]) in names for each in slices))
                ring = ["tile_full[0]", "tile_full[3]", "tile_empty[3]"] if name > "step02" else ["tile_full"]
                for barrier in [*ring, *accumulators(name)]:
                    self.assertIn(barrier, names.values())
                self.assertIn(f"TMA loads for {ring[0]}", names.values())
                processes = [each["args"]["name"] for each in events if each["name"] == "process_name"]
                self.assertEqual(processes, [VIRTUAL] + [f"CTA ({cta.index[0]},0) of cluster 0" for cta in launch.ctas])

    def test_roles(self):
        for name, schedule, _, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                for cta in launch.ctas:
                    first = ["producer", "mma"] if name > "step03" else ["producer and mma", "epilogue"]
                    if name > "step07":  # one CTA of a pair issues the MMAs; the epilogue has four warps of its own
                        first = ["producer", "idle" if cta.rank else "mma", "epilogue", "epilogue"]
                    self.assertEqual([cta.role(warp) for warp in cta.warps()], [*first, "epilogue", "epilogue"])

    def test_stages_and_k_tiles(self):
        """K tile k is loaded into stage k mod 4, and multiplied from there; of step07, which goes on over three tiles, mod 6."""
        for name, schedule, _, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                for cta in launch.ctas:
                    tiles = 1 if name < "step01" else 12 if name > "step07" else trace.K_TILES
                    stages = 6 if name > "step07" else 4 if name > "step02" else 1
                    for kind in ("load", "mma") if "mma" in map(cta.role, cta.warps()) or name < "step03" else ("load",):
                        self.assertEqual(sorted({(span.k_tile, span.stage) for span in cta.of(kind)}),
                                         [(tile, tile % stages) for tile in range(tiles)])
                    self.assertEqual({span.operand for span in cta.of("load")}, {"A", "B"})
                    self.assertTrue(all(span.begin <= span.read <= span.end for span in cta.of("load", "mma", "store")))

    def test_waits_and_phases(self):
        """Who waits for the first K tile is woken by the end of its phase, or asks again."""
        for name, schedule, _, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                for cta in launch.ctas:
                    ends = {(span.barrier, span.operation): span.end for span in cta.of("phase")}
                    for wait in cta.of("wait"):
                        if wait.phase is not None:
                            self.assertEqual((wait.end, wait.parity), (ends[wait.barrier, wait.phase], wait.phase % 2))
                        self.assertIsNotNone(wait.end)
                        self.assertEqual(wait.gave_up, wait.parity is not None and wait.phase is None)
                    # In the earliest schedule the MMAs may be complete before anybody asks.
                    waited = any(wait.phase == 0 and wait.barrier in accumulators(name) for wait in cta.of("wait"))
                    self.assertTrue(waited or schedule == "earliest")
                    self.assertTrue(all(f"{name}/blackwell.cu:" in span.source for span in cta.of("wait", "load", "mma", "commit")))

    def test_arrows_have_both_ends_inside_a_slice(self):
        arrows = 0
        for name, schedule, _, launch in self.runs:
            with self.subTest(rung=name, schedule=schedule):
                slices, events = self.slices(launch)
                ends = defaultdict(list)
                for event in events:
                    if event["ph"] in "sf":
                        ends[event["id"]].append(event["ph"])
                        self.assertTrue(any((each["pid"], each["tid"]) == (event["pid"], event["tid"])
                                            and each["ts"] <= event["ts"] < each["ts"] + each["dur"] for each in slices))
                self.assertTrue(all(each == ["s", "f"] for each in ends.values()))
                arrows += len(ends)
        self.assertGreater(arrows, 0)

    def test_pictures(self):
        for case, (name, schedule, _, launch) in zip(self.cases, self.runs):
            with self.subTest(rung=name, schedule=schedule):
                text = trace_picture.svg(case, launch.ctas[-1])
                self.assertLess(len(text), 60_000)
                said = [each.text for each in ET.fromstring(text).iter() if each.text]
                self.assertTrue(any(VIRTUAL in each and f"schedule {schedule}" in each for each in said))
                labels = [*accumulators(name), "tensor core", "epilogue, warp 3", "tile_full" if name < "step02" else "tile_full[3]"]
                self.assertFalse([label for label in labels if label not in said])
                self.assertEqual("epilogue, warp 0" in said, name < "step07")
                titles = [each for each in said if each.startswith("load of ")]
                self.assertEqual(len(titles), len(launch.ctas[-1].of("load")))


class Command(Refusals):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ladder-trace-")
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name, "out")

    def trace(self, *arguments, **environment):
        done = ladder("trace", *arguments, "--out", self.out, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def files(self):
        return {path.name: path.read_text() for path in self.out.iterdir()}

    def test_what_it_says_and_writes(self):
        said = self.trace("step03")
        for part in ("step03_warpspec (stages-4) at 128x256x160, schedule random:1: 1 CTA", VIRTUAL, "https://ui.perfetto.dev",
                     str(self.out / "step03_warpspec.json"), str(self.out / "step03_warpspec.svg")):
            self.assertIn(part, said)
        files = self.files()
        self.assertEqual(sorted(files), ["step03_warpspec.json", "step03_warpspec.svg"])
        told = json.loads(files["step03_warpspec.json"])["otherData"]
        self.assertIn(VIRTUAL, told["clock"])
        self.assertEqual((told["shape"], told["schedule"], told["variant"]), ("128x256x160", "random:1", "stages-4"))

    def test_host_threads_change_nothing(self):
        for arguments in (["step03", "--shape", "512x512x64"], ["step06", "--shape", "512x512x128", "--schedule", "random:9"]):
            both = []
            for threads in "12":
                self.trace(*arguments, LADDER_THREADS=threads)
                both.append(self.files())
            self.assertEqual(*both)

    def test_one_cta_or_cluster(self):
        for choice, ctas, block in ((["--cta", "5"], [(5, 1)], 5), (["--cluster", "1"], [(x, 1) for x in range(4, 8)], 4),
                                    ([], [(x, x // 4) for x in range(8)], 0)):
            self.trace("step06", "--shape", "512x512x64", *choice)
            files = self.files()
            names = [event["args"]["name"] for event in json.loads(files["step06_multicast.json"])["traceEvents"]
                     if event["name"] == "process_name"]
            self.assertEqual(names[1:], [f"CTA ({x},0) of cluster {cluster}" for x, cluster in ctas])
            self.assertIn(f"CTA ({block},0)", files["step06_multicast.svg"])

    def test_a_variant(self):
        self.trace("step03", "--variant", "stages-2")
        files = self.files()
        self.assertIn("through 2 stages", files["step03_warpspec.svg"])
        self.assertNotIn("stage 2", files["step03_warpspec.svg"])

    def test_what_is_refused(self):
        for arguments, parts in ((["step99"], ["step99: no such rung", "step00_single_mma"]),
                                 (["step03", "--shape", "128x256"], ["--shape 128x256: expected MxNxK"]),
                                 (["step03", "--schedule", "late"], ["--schedule late: expected earliest, latest, random"]),
                                 (["step03", "--cta", "1"], ["--cta 1: the launch had 1 CTA, counted from 0"]),
                                 (["step06", "--cluster", "-1"], ["--cluster -1: the launch had 1 cluster, counted from 0"]),
                                 (["step03", "--cta", "0", "--cluster", "0"], ["--cluster: not allowed with argument --cta"]),
                                 ([], ["required: stepNN"])):
            self.assert_refused_in_one_line(ladder("trace", *arguments, "--out", self.out), *parts)
        self.assertFalse(self.out.exists())
        self.out.touch()
        self.assert_refused_in_one_line(ladder("trace", "step00", "--out", self.out), f"--out {self.out}: ")

    def test_what_the_rung_refuses(self):
        self.assert_refused(ladder("trace", "step00", "--shape", "128x256x32", "--out", self.out), "K = 32",
                            "step00_single_mma ended with exit status 2")

    def test_a_trace_without_a_launch(self):
        with self.assertRaises(Refusal):
            trace.one_launch("")


if __name__ == "__main__":
    unittest.main()
