# SPDX-License-Identifier: Apache-2.0
"""Tests the answers, comparisons and rules that benchmarks/gpu computes, on results that are written here."""
import contextlib
import importlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/gpu"))
answers = importlib.import_module("answers")
page = importlib.import_module("page")
compare_arms = importlib.import_module("compare_arms")
compare_losses = importlib.import_module("compare_losses")
rules_of_sweep = importlib.import_module("rules_of_sweep")


def row(experiment, case, outcome="ok", choice=None, **more):
    if choice:
        more["chosen"] = "AllReduce: 1024 Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}".format(*choice[:2], choice[2] - 1)
    return {"experiment": experiment, "case": case, "nccl": "2.30.7", "outcome": outcome, **more}


def answer(*rows):
    return list(answers.report(rows))[-1].removeprefix("    answer: ")


def run(module, *words):
    """Runs a program. Returns its exit code and output."""
    output = io.StringIO()
    sys.argv = ["program", *map(str, words)]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = module.main()
    return code, output.getvalue()


class Answers(unittest.TestCase):
    def test_minus_one(self):
        untouched = row("d", "1 KiB, table untouched", choice=("RING", "LL", 1))
        self.assertEqual(answer(untouched, row("d", "1 KiB, -1 on Ring Simple", choice=("RING", "SIMPLE", 1))), "it forces the entry")
        self.assertEqual(answer(untouched, row("d", "1 KiB, -1 on Ring Simple", choice=("RING", "LL", 1))), "it leaves the choice")
        self.assertTrue(answer(untouched, row("d", "1 KiB, -1 on Ring Simple", "hang")).startswith("open"))

    def test_channels(self):
        def case(asked, got):
            return row("e", f"262144 B Ring Simple, {asked} channels asked", choice=("RING", "SIMPLE", got))

        self.assertEqual(answer(case(0, 2), case(1, 1), case(3, 3), case(16, 16)), "fewer than NCCL's: taken; more: taken")
        self.assertEqual(answer(case(0, 2), case(1, 1), case(3, 2), case(16, 2)), "fewer than NCCL's: taken; more: not taken")

    def test_disagreement_and_hosts(self):
        self.assertEqual(answer(row("f", "LL against Simple", "hang")), "LL against Simple: hang")
        self.assertEqual(answer(row("a", "2 ranks"), row("a", "2 ranks, MPS", "skipped", reason="no MPS")), "yes")
        self.assertEqual(answer(row("a", "2 ranks"), row("a", "4 ranks", "hang")), "not for 4 ranks")
        self.assertEqual(answer(row("b", "several", "skipped", reason="too old")), "open: skipped, too old")

    def test_static_plugin_and_kernel_events(self):
        self.assertEqual(answer(row("c", "preloaded", plugin={"tuner_calls": 0, "profiler_inits": 1})), "tuner: no, profiler: yes")
        eager = row("g", "kernel events without a graph", plugin={"kernel_events": 85})
        self.assertIn("yes", answer(eager, row("g", "kernel events --graph", plugin={"kernel_events": 85})))
        self.assertIn("only at capture", answer(eager, row("g", "kernel events --graph", plugin={"kernel_events": 9})))
        self.assertTrue(answer(eager, row("g", "kernel events --graph", "failed")).startswith("open"))

    def test_forced_choices_must_show_in_both(self):
        right = row("forced", "ring ll 2", choice=("RING", "LL", 2), plugin={"profiled": "AllReduce RING LL 2"})
        self.assertEqual(answer(right), "1 of 1 as asked")
        other = row("forced", "tree ll 2", choice=("TREE", "LL", 2), plugin={"profiled": "AllReduce RING LL 2"})
        self.assertTrue(answer(right, other).startswith("1 of 2 as asked; tree ll 2"))
        more = row("forced", "ring ll 1", choice=("RING", "LL", 2), plugin={"profiled": "AllReduce RING LL 2"})
        self.assertTrue(answer(more).startswith("0 of 1"))

    def test_cost_is_told_beside_its_noise(self):
        rows = [row("cost", f"8 B, profiler mask {mask}, turn {turn}", rank_0={"median_us": time})
                for turn, (none, stamped) in enumerate([(10.0, 11.0), (10.5, 11.2), (10.2, 11.1)])
                for mask, time in (("none", none), ("66", stamped))]
        self.assertEqual(answer(*rows), "8 B: +8.8 % (noise of the runs without: 4.9 %)")


class Comparisons(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, *lines):
        (self.folder / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    def test_arms(self):
        for arm, times in {"none": (10, 12, 11), "observe": (11, 11.2, 12)}.items():
            for turn, time in enumerate(times):
                self.write(f"small_{arm}_{turn}.json", {"rows": [{"bytes": 8, "out_of_place": {"per_iteration": {"p50_us": time}}}]})
        code, output = run(compare_arms, self.folder, "none", "observe")
        self.assertEqual((code, output.splitlines()[1].split()), (0, ["8", "11.00", "18.2", "+1.8"]))
        self.assertEqual(run(compare_arms, self.folder, "none", "frozen")[0], 1)

    def test_losses(self):
        def write(name, shift):
            self.write(name, *({"step": step, "loss": 5.0 - step * 0.1 + shift} for step in range(4)))

        for stage in range(4):
            write(f"cuda_{stage}_0.jsonl", 1e-5 * stage)
        write("cpu_0_0.jsonl", 1e-3)
        self.assertEqual(run(compare_losses, self.folder)[0], 0)
        write("cuda_3_0.jsonl", 0.01)
        code, output = run(compare_losses, self.folder)
        self.assertEqual(code, 1)
        self.assertIn("stage 3 on CUDA: differs", output)
        (self.folder / "cuda_2_0.jsonl").unlink()
        self.assertIn("stage 2 on CUDA: has not the same steps", run(compare_losses, self.folder)[1])

    def test_rules_are_made_only_of_what_is_better_beyond_scatter(self):
        def measured(size, default, times, channels=2):
            return {"kind": "row", "collective": "AllReduce", "bytes": size, "default": default, "algorithm": "Ring",
                    "protocol": "LL", "channels": channels, "us": times}

        self.write("s", {"magic": "x"}, measured(8, True, [10, 11, 12, 13, 14]), measured(8, False, [5, 6, 7, 8, 9], 1),
                   measured(64, True, [10, 11, 12, 13, 14]), measured(64, False, [9, 10, 11, 12, 13]))
        self.assertEqual(run(rules_of_sweep, self.folder / "s"), (0, "allreduce,8,8,ring,ll,1,-1,-1\n"))
        self.write("empty", {"kind": "end"})
        self.assertEqual(run(rules_of_sweep, self.folder / "empty")[0], 1)


class Page(unittest.TestCase):
    def test_shows_what_ran_and_leaves_out_what_did_not(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            setting = {"name": "ring/simple/4", "step_ms": 9.0, "ratio": 0.9, "low": 0.85, "high": 0.95}
            (work / "ab-ddp.json").write_text(json.dumps({"rounds": 7, "noise": 0.02, "settings": [{**setting, "name": "default", "step_ms": 10}, setting]}))
            (work / "ab-fsdp2.json").write_text(json.dumps({"rounds": 8, "noise": 0.03, "settings": [{**setting, "name": "default", "step_ms": 20}]}))
            for mode, milliseconds in (("off", 10.0), ("adaptive", 9.5)):
                (work / f"{mode}-1.json").write_text(json.dumps({"milliseconds": [99.0] * 20 + [milliseconds] * 60}))
            (work / "hour-newest").mkdir()
            rows = [row("c", "preloaded", plugin={"tuner_calls": 4, "profiler_inits": 1}), row("h", "algSelection RING_LL", choice=("RING", "LL", 2)),
                    row("h", "algSelection TREE_LL", "skipped", reason="the 5 s of this run were over")]
            (work / "hour-newest/results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
            code, text = run(page, work)
        self.assertEqual(code, 0)
        for line in ("| setting | ddp | fsdp2 |", "| default | 10.00 ms | 20.00 ms |", "| ring/simple/4 | 0.900 (0.850 to 0.950) |  |",
                     "| rounds, noise of a turn | 7, 2.0 % | 8, 3.0 % |", "| off | 10.00 ms |", "| adaptive | 9.50 ms |",
                     "| 2.30.7 | (c) Does STATIC_PLUGIN find the tuner and the profiler of a preloaded object? | tuner: yes, profiler: yes |",
                     "| 2.30.7 | (h) Does the choice of a call (algSelection) take effect? | RING_LL: taken |"):
            self.assertIn(line, text.splitlines())
        self.assertNotIn("## Sweep", text)

    def test_few_rounds_have_no_interval(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            setting = {"name": "ring/ll/2", "step_ms": 9.0, "ratio": 0.9, "low": None, "high": None}
            (work / "ab-ddp.json").write_text(json.dumps({"rounds": 2, "noise": 0.02, "settings": [{**setting, "name": "default"}, setting]}))
            code, text = run(page, work)
        self.assertEqual(code, 0)
        self.assertIn("| ring/ll/2 | 0.900 (interval not known) |", text.splitlines())

    def test_says_what_to_name_where_there_is_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text = run(page, folder)
            self.assertEqual(code, 1)
            self.assertIn("name the folder `work` of its archive", text)
            self.assertEqual(run(page, folder + "/none")[0], 2)


if __name__ == "__main__":
    unittest.main()
