"""`./ladder profile`: Nsight Compute's tables, counters that a chip lacks, what is refused and how, what is recorded and quoted."""

import contextlib
import csv
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import Machine, Refusals, ladder

from tools import build, gpu_tool, pages, profile, profile_tables
from tools.terminal import Refusal

PLACE = {"device": {"emulated": False, "name": "NVIDIA H200", "compute_capability": "9.0"}, "fixed_k": None, "variants": ["plain"],
         "settings": {}}

# As ncu 2025.3 prints it: names, units, a row a launch.
NAMES = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
         "dram__bytes_read.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum",
         "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "launch__registers_per_thread", "launch__shared_mem_per_block",
         "sm__cycles_elapsed.avg.per_second", "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_active",
         "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "smsp__average_warp_latency_per_inst_issued.ratio",
         "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
         "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio",
         "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
         "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "smsp__inst_executed.sum", "lts__t_sector_hit_rate.pct"]
UNITS = ["", "", "", "", "", "", "", "block", "block", "", "", "byte", "%", "ns", "", "register/thread", "byte/block", "hz", "", "%",
         "cycle", "inst", "inst", "inst", "inst", "inst", "%"]
VALUES = ["0", "4242", "step04_swizzle", "127.0.0.1", "void step04_swizzle_hopper<(DType)0, (DType)0>(CUtensorMap, CUtensorMap)", "1", "7",
          "(384, 1, 1)", "(16, 32, 1)", "0", "9.0", "71,303,168", "9.25", "201,408", "0", "168", "197,632", "1,612,345,678.9", "n/a",
          "88.75", "31.5", "0.25", "12.5", "3.75", "1.5", "1,234,567", "nan"]
ZERO, ABSENT, NOT_A_NUMBER = NAMES[14], NAMES[18], NAMES[26]


def table(*launches):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([NAMES, UNITS, *launches])
    return "==PROF== imported\n" + out.getvalue()


# Leaves a report where --export says, and prints it when it is imported.
NCU = '''case "$*" in
  *--version*) echo "NVIDIA (R) Nsight Compute Command Line Profiler"; echo "Version 2025.3.1.0 (build 1)" ;;
  *--import\\ *) cat {table} ;;
  *) {before}
     while [ $# -gt 0 ]; do [ "$1" = --export ] && echo "{report}" > "$2"; shift; done ;;
esac'''


class Tables(unittest.TestCase):
    def setUp(self):
        self.profile = profile.parsed(table(VALUES))

    def value(self, key):
        return self.profile.value(next(metric for metric in profile.ALL if metric.key == key))

    def test_values_come_in_the_units_that_are_shown(self):
        for key, wanted in (("time", 201.408), ("dram_read", 71.303168), ("clock", 1.6123456789), ("shared", 197.632), ("issue", 31.5),
                            ("stall_gmma", 12.5), ("instructions", 1234567)):
            self.assertAlmostEqual(self.value(key), wanted, msg=key)
        self.assertEqual(self.profile.about, {"kernel": VALUES[4], "block": "(384, 1, 1)", "grid": "(16, 32, 1)"})

    def test_what_the_chip_does_not_have_is_absent_and_not_zero(self):
        self.assertNotIn(ABSENT, self.profile.values)
        self.assertNotIn(NOT_A_NUMBER, self.profile.values)
        self.assertIsNone(self.value("l2_hits"))
        self.assertIsNone(self.value("waves"))
        self.assertEqual(self.value("bank_conflicts"), 0)
        self.assertEqual([profile.figure(each) for each in (None, 0.0)], ["-", "0"])

    def test_of_several_counters_the_first_that_is_there(self):
        self.assertEqual(self.value("tensor"), 88.75)
        self.profile.values[ABSENT] = ("%", 60.0)
        self.assertEqual(self.value("tensor"), 60.0)

    def test_a_unit_that_nobody_knows_is_told(self):
        self.profile.values["gpu__time_duration.sum"] = ("fortnight", 2.0)
        self.assertEqual(profile.figure(self.value("time")), "2 fortnight")

    def test_figures(self):
        self.assertEqual([profile.figure(each) for each in (1234567.4, 1000.0, 201.408, 88.75, 9.4, 0.256, 168.0, "73.8 % of them")],
                         ["1,234,567", "1,000", "201.4", "88.8", "9.4", "0.26", "168", "73.8 % of them"])

    def test_one_launch_it_must_be(self):
        for text, part in ((table(), "0 launches"), (table(VALUES, VALUES), "2 launches"), ("==ERROR== no such file", "no such file"),
                           ("", "it is empty")):
            with self.assertRaisesRegex(Refusal, part):
                profile.parsed(text)

    def test_written_and_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "step04.csv")
            profile.write(path, self.profile)
            lines = path.read_text().splitlines()
            self.assertEqual(lines[0], "metric,unit,value")
            self.assertEqual([line.split(",")[0] for line in lines[1:]], list(profile.COUNTERS))
            self.assertIn(f"{ABSENT},,", lines)
            self.assertIn("gpu__time_duration.sum,ns,201408", lines)
            self.assertEqual(profile.read(path), self.profile)
            path.write_text("metric,unit,value\ngpu__time_duration.sum,ns,soon\n")
            with self.assertRaisesRegex(Refusal, "no profile as"):
                profile.read(path)
            self.assertIsNone(profile.read(Path(folder, "step05.csv")))

    def test_what_is_no_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "step04.csv")
            for text in ("", "gpu__time_duration.sum,ns,201408\n", "metric,value\ngpu__time_duration.sum,201408\n"):
                path.write_text(text)
                with self.assertRaisesRegex(Refusal, r"step04.csv: no profile as .*its first line is not metric,unit,value"):
                    profile.read(path)
            profile.write(path, self.profile)
            path.with_suffix(".json").write_text("[]")
            with self.assertRaisesRegex(Refusal, "step04.json is no object"):
                profile.read(path)
            path.with_suffix(".json").unlink()
            with self.assertRaisesRegex(Refusal, f"step04.csv: incomplete: there is no {folder}/step04.json, .*from git"):
                profile.read(path)
            Path(folder, "step06.csv").mkdir()
            with self.assertRaisesRegex(Refusal, "step06.csv: no profile as"):
                profile.read(Path(folder, "step06.csv"))

    def test_what_ncu_cannot_compute_is_absent(self):
        for text in ("inf", "-inf", "nan"):
            values = [text if name == NAMES[14] else value for name, value in zip(NAMES, VALUES)]
            self.assertNotIn(ZERO, profile.parsed(table(values)).values)

    def test_the_longest_waits_and_what_an_origin_names(self):
        shown = {metric.key: cells for metric, cells in profile.rows([self.profile, None])}
        self.assertEqual([key for key in shown if key.startswith("stall_")], ["stall_long_scoreboard", "stall_gmma", "stall_wait"])
        shown = {metric.key: cells for metric, cells in profile.rows([self.profile, {"stall_barrier": "54 % of stalls"}])}
        self.assertEqual(shown["stall_barrier"], ["0.25", "54 % of stalls"])
        self.assertEqual(shown["time"], ["201.4", "-"])

    def test_metrics_are_explained_and_named_once(self):
        self.assertEqual(len({metric.key for metric in profile.ALL}), len(profile.ALL))
        self.assertEqual(len(set(profile.COUNTERS)), len(profile.COUNTERS))
        for metric in profile.ALL:
            self.assertRegex(metric.meaning, r"^[A-Z].+[.]$")

    def test_the_origin_speaks_of_metrics_and_rungs_that_there_are(self):
        known = json.loads(profile.ORIGIN.read_text())
        self.assertEqual((known["label"], known["gpu"]), ("origin", "NVIDIA B200"))
        for name, figures in known["profiles"].items():
            self.assertIn(name.partition(":")[0], build.sources())
            self.assertLessEqual(set(figures), {metric.key for metric in profile.ALL})
        self.assertEqual(profile.origin("step01_kloop")["issue"], 167.6)
        self.assertEqual(profile.origin("step07_persistent", "pair")["waves"], 3.46)
        self.assertEqual(profile.origin("step01_kloop", shape="512x512x512"), {})


class WithNcu(Refusals):
    """A fake ncu in a PATH of its own, a GPU that the rung says it runs on, and folders that a test may fill."""

    def setUp(self):
        self.machine = Machine()
        self.addCleanup(self.machine.close)
        self.home = self.machine.home
        self.table = self.home / "table.csv"
        self.table.write_text(table(VALUES))
        (self.home / "bench").mkdir()
        self.patch(profile, "FOLDER", self.home / "bench")
        self.patch(build, "build", lambda *_, **__: None)
        self.patch(build, "rung", lambda name: Path("/nowhere") / name)
        self.patch(gpu_tool, "require_gpu", lambda *_: None)
        self.patch(gpu_tool, "driver", lambda: "580.159")
        self.patch(gpu_tool, "where", lambda *_, **__: (dict(PLACE), ""))
        self.ncu()

    def patch(self, where, name, value):
        patcher = mock.patch.object(where, name, value)
        patcher.start()
        self.addCleanup(patcher.stop)

    def ncu(self, before="", report="report"):
        path = self.machine.program("ncu", NCU.format(table=self.table, before=before, report=report))
        self.patch(gpu_tool, "find", lambda *_: path)

    def profile(self, *arguments, status=0):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as self.noted:
            self.assertEqual(profile.command([*arguments, "--out", str(self.home / "out")]), status)
        return out.getvalue()

    def refused(self, *arguments):
        with self.assertRaises(Refusal) as caught:
            self.profile(*arguments)
        return str(caught.exception)

    def launched(self):
        return next(line.split() for line in self.machine.logged() if "--export" in line)

    def test_one_launch_behind_the_first_with_the_clock_left_alone(self):
        said = self.profile("step04")
        words = " ".join(self.launched())
        for part in ("--clock-control none", "--target-processes all", "--import-source no", "--kernel-name regex:step04",
                     "--launch-skip 1", "--launch-count 1", "--section WarpStateStats", "--section MemoryWorkloadAnalysis_Tables",
                     "/nowhere/step04_swizzle --shape square-4096 --on gpu --bench"):
            self.assertIn(part, words)
        asked = self.launched()[self.launched().index("--metrics") + 1].split(",")
        self.assertEqual(asked, list(profile.COUNTERS))
        row = next(line for line in said.splitlines() if line.startswith("tensor pipe busy"))
        self.assertEqual(row.split()[4:7], ["88.8", "-", "63.7"])
        self.assertIn("Share of an SM's cycles", row)
        self.assertEqual(sorted(path.name for path in (self.home / "out").iterdir()), ["step04.csv", "step04.json", "step04.ncu-rep"])

    def test_step00_has_its_own_k_and_a_variant_its_own_name(self):
        self.patch(gpu_tool, "where", lambda *_, **__: ({**PLACE, "fixed_k": 16}, ""))
        self.profile("step00")
        self.assertIn("4096x4096x16", self.launched())
        self.machine.log.write_text("")
        self.patch(gpu_tool, "where", lambda *_, **__: (dict(PLACE), ""))
        self.profile("step07", "--variant", "scheduler=counter,ctas=2", "--shape", "512x512x512")
        self.assertIn("--variant scheduler=counter,ctas=2", " ".join(self.launched()))
        self.assertTrue((self.home / "out" / "step07.scheduler-counter-ctas-2.512x512x512.ncu-rep").is_file())

    def test_cublas(self):
        self.patch(build, "rungs", lambda: ["step00_single_mma", "step01_kloop"])
        self.profile("cublas", "--record")
        self.assertIn("gemm_bench --shape square-4096", " ".join(self.launched()))
        self.assertIn("regex:nvjet|gemm|cutlass", self.launched())
        self.assertTrue((self.home / "bench" / "h200" / "cublas.csv").is_file())

    def test_recorded_with_where_it_comes_from_and_shown_again(self):
        self.assertNotIn("recorded in", self.profile("step04"))
        self.assertEqual(list((self.home / "bench").iterdir()), [])
        self.assertIn("recorded in", self.profile("step04", "--record"))
        folder = self.home / "bench" / "h200"
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["step04.csv", "step04.json", "step04.ncu-rep"])
        about = json.loads((folder / "step04.json").read_text())
        for key, value in (("label", "measured"), ("gpu", "NVIDIA H200"), ("driver", "580.159"), ("tool", "Nsight Compute 2025.3.1.0"),
                           ("shape", "square-4096"), ("variant", "the default"),
                           ("command", "./ladder profile step04 --shape square-4096")):
            self.assertEqual(about[key], value)
        self.assertIn("--clock-control none", about["ncu"])
        self.assertIn("not locked", about["clock"])
        self.assertNotIn(str(build.FOLDER), json.dumps(about))
        self.ncu(before="exit 1")  # nobody asks it now
        said = self.profile("step04", "--show")
        row = next(line for line in said.splitlines() if line.startswith("L1/TEX busy"))
        self.assertEqual(row.split()[3:5], ["-", "68.8"])
        self.assertIn("committed, h200", said)
        row = next(line for line in said.splitlines() if line.startswith("kernel time"))
        self.assertEqual(row.split()[3:5], ["201.4", "116.2"])

    def test_all_goes_on_where_one_is_refused(self):
        self.patch(build, "rungs", lambda: ["step00_single_mma", "step01_kloop"])
        self.ncu(before='case "$*" in *regex:step03*) echo "==ERROR== no luck"; exit 1 ;; esac')
        self.profile("all", "--record", status=1)
        self.assertEqual(sorted(path.stem for path in (self.home / "bench" / "h200").glob("*.csv")),
                         ["cublas", "step00", "step01", "step02", "step04", "step05", "step06", "step07"])
        self.assertIn("no luck", self.noted.getvalue())
        self.assertIn("Not profiled, for the reasons above: step03_warpspec.", self.noted.getvalue())

    def rebuilt(self, *names):
        """An executable with these kernels' names, and where others are noted that are asked for in its place."""
        (self.home / "step04_swizzle").write_bytes(b"".join(name.encode() + b"\0" for name in names))
        self.patch(build, "rung", lambda name: self.home / name)
        asked = []
        self.patch(build, "rebuilt", lambda name, changes, folder: asked.append((name, changes)) or Path("/few") / name)
        return asked

    def test_a_large_report_once_more_without_the_code_of_others(self):
        self.patch(profile, "MOST_REPORT_BYTES", 6)
        mangled = "_Z4stepILi{}ELi1ELN6ladder5DTypeE{}EEvPv"
        asked = self.rebuilt(*[mangled.format(size, dtype) for size in (256, 128) for dtype in (0, 1)], mangled.format(64, 0) + "_param_0")
        self.patch(profile, "kernel_of", lambda *_: mangled.format(128, 0))
        self.ncu(report='$(case "$*" in */few/*) echo few ;; *) echo report ;; esac)')
        self.profile("step04", "--record")
        options = [f"-Xptxas=--entry={mangled.format(size, 0)}" for size in (128, 256)] + ["-Xptxas=--suppress-debug-info"]
        self.assertEqual(asked, [("step04_swizzle", {"step04_swizzle/hopper.cu": (None, options)})])
        self.assertEqual((self.home / "bench" / "h200" / "step04.ncu-rep").read_text().strip(), "few")

    def test_a_report_that_is_too_large(self):
        self.patch(profile, "MOST_REPORT_BYTES", 6)
        self.rebuilt()
        self.profile("step04")  # not for git
        said = self.refused("step04", "--record")
        for part in ("step04.ncu-rep", "7 bytes", "at most 6", "SECTIONS", "leave --record out"):
            self.assertIn(part, said)
        self.assertFalse((self.home / "bench" / "h200").exists())

    def test_all_reports_together_are_too_large(self):
        self.patch(profile, "MOST_BYTES", 10)
        self.profile("step04", "--record")
        self.profile("step04", "--record")  # in the first one's place
        self.assertIn("14 bytes of reports with step05.ncu-rep, and there may be 10", self.refused("step05", "--record"))

    def test_a_report_that_names_this_machines_folders(self):
        home = Path("/home/somebody/ladder")
        self.patch(build, "sources", lambda: ["step04_swizzle"])
        self.ncu(report=f"sources: {home}/step04_swizzle/hopper.cu")
        for root, folder in ((home, Path("/nowhere/build")), (Path("/nowhere"), home)):
            self.patch(build, "ROOT", root)
            self.patch(build, "FOLDER", folder)
            self.profile("step04")  # not for git
            said = self.refused("step04", "--record")
            for part in (str(self.home / "out" / "step04.ncu-rep"), f"has {home} in it", "Nothing is recorded", "a copy of the checkout in /tmp/gemm-ladder"):
                self.assertIn(part, said)
            self.assertNotIn("\n", said)
            self.assertFalse((self.home / "bench" / "h200").exists())
        self.ncu(report="sources: /tmp/gemm-ladder/step04_swizzle/hopper.cu")
        self.patch(build, "ROOT", Path("/tmp/gemm-ladder"))
        self.patch(build, "FOLDER", Path("/tmp/gemm-ladder/build"))
        self.assertIn("recorded in", self.profile("step04", "--record"))

    def test_counters_are_not_permitted(self):
        self.ncu(before='echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance '
                        'Counters on the target device 0."; exit 1')
        said = self.refused("step04")
        for part in ("ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0", "root", "--privileged",
                     "https://developer.nvidia.com/ERR_NVGPUCTRPERM", "`./ladder bench` needs no counters"):
            self.assertIn(part, said)

    def test_counters_that_this_ncu_refuses_to_look_for_are_left_out(self):
        self.ncu(before=f'case "$*" in *{ABSENT}*) echo "==ERROR== Failed to find metric {ABSENT}."; exit 1 ;; esac')
        self.assertIn("88.8", self.profile("step04"))

    def test_no_launch_was_seen(self):
        self.ncu(before='echo "==WARNING== No kernels were profiled."; exit 0')
        said = self.refused("step04")
        self.assertIn("no report", said)
        self.assertIn("No kernels were profiled", said)
        self.ncu(before="trap 'exit 3' EXIT")
        self.assertIn("exit status 3 and a report", self.refused("step04"))

    def test_the_report_of_an_earlier_run_is_not_taken_for_this_one(self):
        self.profile("step04")
        self.ncu(before='case "$*" in *--export*) exit 0 ;; esac')
        self.assertIn("no report", self.refused("step04"))

    def test_a_gpu_that_the_rung_does_not_run_on(self):
        self.patch(gpu_tool, "where", lambda *_, **__: (None, "--on gpu: an L4 has neither"))
        said = self.refused("step04")
        self.assertIn("an L4 has neither", said)
        self.assertIn("--show", said)

    def test_a_page_quotes_what_is_committed(self):
        block = "<!-- profile: step04_swizzle -->\n| old |\n"
        with self.assertRaisesRegex(Refusal, r"no counters of step03_warpspec .*\./ladder profile step03 --record"):
            pages.renewed(block, {"profile": profile_tables.profiled})
        self.profile("step03", "--record")
        with self.assertRaisesRegex(Refusal, r"no counters of step04_swizzle .*\./ladder profile step04 --record"):
            pages.renewed(block, {"profile": profile_tables.profiled})
        self.profile("step04", "--record")
        lines = pages.renewed(block, {"profile": profile_tables.profiled}).splitlines()
        self.assertEqual(lines[1], "|  | *origin*, B200: step03_warpspec | *origin*, B200: step04_swizzle | "
                                   "*measured*, H200: step03_warpspec | *measured*, H200: step04_swizzle |")
        self.assertIn("| kernel time, us | 477 | 116.2 | 201.4 | 201.4 |", lines)
        self.assertIn("| tensor pipe busy, % | 13.7 | 63.7 | 88.8 | 88.8 |", lines)
        self.assertFalse([line for line in lines if line.startswith("| waves")])  # nobody has it
        self.profile("step00", "--record")
        first = pages.renewed(block.replace("step04_swizzle", "step00"), {"profile": profile_tables.profiled}).splitlines()
        self.assertEqual(first[1], "|  | *origin*, B200: step00_single_mma | *measured*, H200: step00_single_mma |")


class Pages(unittest.TestCase):
    def test_every_metric_with_its_meaning(self):
        text = pages.renewed("<!-- metrics: all -->\n| old |\n", {"metrics": profile_tables.metrics})
        for metric in profile.ALL:
            self.assertIn(metric.meaning, text)
            self.assertIn(f"`{metric.counters[0]}`", text)
        with self.assertRaisesRegex(Refusal, "expected all"):
            profile_tables.metrics("some")

    def test_the_page_is_up_to_date(self):
        page = (build.ROOT / "docs" / "benchmarks.md").read_text()
        self.assertIn(profile_tables.metrics("all"), page)
        self.assertIn("A counter that a chip does not have is `-` and not 0, and so is one that Nsight Compute could not compute", page)


class FromOutside(Refusals):
    def test_no_ncu(self):
        with tempfile.TemporaryDirectory() as empty, mock.patch.dict("os.environ", PATH=empty), \
                mock.patch.object(gpu_tool, "PLACES", (f"{empty}/cuda*/bin",)):
            with self.assertRaisesRegex(Refusal, r"^ncu is neither in the PATH nor in .*Nsight Compute.*PATH"):
                profile.command(["step04"])

    def test_the_newest_of_several(self):
        machine = Machine()
        self.addCleanup(machine.close)
        for version in ("12.9", "13.0", "13.10", "9.2"):
            machine.program("ncu", "exit 0", machine.home / f"cuda-{version}" / "bin")
        with mock.patch.dict("os.environ", PATH=str(machine.home)), \
                mock.patch.object(gpu_tool, "PLACES", (f"{machine.home}/cuda*/bin",)):
            self.assertEqual(gpu_tool.find("ncu", "Nsight Compute"), machine.home / "cuda-13.10" / "bin" / "ncu")

    def test_no_gpu(self):
        machine = Machine()
        self.addCleanup(machine.close)
        ncu = machine.program("ncu", "exit 0")
        with mock.patch.object(gpu_tool, "find", lambda *_: ncu), mock.patch.object(gpu_tool, "has_gpu", lambda: False), \
                mock.patch.object(build, "build", side_effect=AssertionError("built")):
            with self.assertRaisesRegex(Refusal, "no NVIDIA GPU.*--show"):
                profile.command(["step04"])

    def test_refused_before_anything_is_done(self):
        self.assert_refused_in_one_line(ladder("profile", "step99"), "step99: no such rung")
        self.assert_refused_in_one_line(ladder("profile", "all", "--variant", "pair"), "--variant pair", "name one rung")
        self.assert_refused_in_one_line(ladder("profile", "--frobnicate", "step04"), "./ladder profile --help")
        for more in ([], ["--show"]):
            self.assert_refused_in_one_line(ladder("profile", "step07", "--shape", "foo", *more), "--shape foo: not a shape; write MxNxK")

    def test_shown_without_a_gpu(self):
        done = ladder("profile", "--show", "step03")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = next(line for line in done.stdout.splitlines() if line.startswith("kernel time"))
        self.assertIn("477", row.split())
        self.assertIn("another kernel on another chip", done.stdout)
        self.assertIn("one that Nsight Compute could not compute", done.stdout)

    def test_no_table_of_what_nobody_has(self):
        for more, again in ((["--variant", "nosuch"], "step07 --variant nosuch --record"), (["--shape", "1x8x8"], "step07 --shape 1x8x8 --record")):
            done = ladder("profile", "--show", "step07", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"Nothing is committed of that, and the origin gives nothing of it. On a GPU: ./ladder profile {again}\n", done.stdout)
            self.assertNotIn("kernel time", done.stdout)

    def test_names_of_chips_are_names_of_folders(self):
        self.assertEqual([gpu_tool.chip_of(name) for name in ("NVIDIA H200", "NVIDIA H100 80GB HBM3")], ["h200", "h100-80gb-hbm3"])


if __name__ == "__main__":
    unittest.main()
