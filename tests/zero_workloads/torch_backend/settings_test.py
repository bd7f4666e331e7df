# SPDX-License-Identifier: Apache-2.0
"""Tests `dynamiccl run --settings` and `dynamiccl tune` on the unmodified example script, over hostccl with two ranks.

The recorded calls are the evidence: a bucket size shows as a number of AllReduces per step. The losses must be those of
the plain run bit for bit, because a sum of two numbers has only one order.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import forked_ranks

SOURCE = os.environ["DYNAMICCL_SOURCE_DIR"]
DYNAMICCL = os.environ["DYNAMICCL_PROGRAM"]
SCRIPT = os.path.join(SOURCE, "zero_workloads/torch_backend/examples/train_gpt.py")
MODEL = ["--layers", "2", "--hidden", "96", "--vocabulary", "256", "--sequence", "32", "--steps", "12"]
# The backend's folder is on PYTHONPATH. With -I Python ignores this variable, so ISOLATED adds the folder itself.
PYTHON = (sys.executable, "-W", "ignore")
ISOLATED = f"import runpy, sys; sys.path.append({os.environ['PYTHONPATH'].split(os.pathsep)[0]!r}); " \
           f"sys.argv = sys.argv[1:]; runpy.run_path({SCRIPT!r}, run_name='__main__')"


class Job(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dynamiccl_settings_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def dynamiccl(self, *arguments, code=0):
        done = subprocess.run([DYNAMICCL, *arguments], capture_output=True, text=True, timeout=600, cwd=self.folder,
                              env={**os.environ, "NO_COLOR": "1"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def settings(self, **groups):
        with open(self.path("s.json"), "w") as file:
            json.dump({"format": "dynamiccl-settings", "version": 1, **groups}, file)
        return self.path("s.json")

    def rules(self, config, *collectives):
        with open(self.path("rules.toml"), "w") as rules:
            rules.write("version = 1\n" + "".join(
                f'[[rule]]\ncollective = "{collective}"\nconfig = "{config}"\n' for collective in collectives))

    def assert_near(self, losses, others):
        """Requires that the losses of all ranks differ only by rounding."""
        for ours, theirs in zip(losses, others):
            for one, other in zip(ours, theirs):
                self.assertAlmostEqual(float.fromhex(one), float.fromhex(other), delta=1e-4)

    def train(self, parallel, *options, python=None, ranks=2, model=()):
        """Returns the losses of all ranks, and the receipts. Without `python` the ranks are forks."""
        self.dynamiccl("run", "-n", str(ranks), *options, "--json", self.path("run.json"), "--",
                       *(python or (*forked_ranks.python(), SCRIPT)), "--parallel", parallel, *MODEL, *model, "--json", self.path("{rank}.json"))
        losses = []
        for rank in range(ranks):
            with open(self.path(f"{rank}.json")) as file:
                losses.append(json.load(file)["losses"])
        with open(self.path("run.json")) as file:
            return losses, json.load(file)["settings"]


class Settings(Job):
    def test_parameters_that_are_kept_are_gathered_once(self):
        started = (*PYTHON, SCRIPT)
        plain, _ = self.train("fsdp2", python=started)
        asked = {"reshard_after_forward": False, "forward_prefetch": 1}
        losses, receipts = self.train("fsdp2", "--settings", self.settings(fsdp2=asked), python=started)
        self.assertEqual(losses, plain)
        standing = {r["setting"]: (r["standing"], r["how"]) for r in receipts}
        self.assertEqual(standing["fsdp2.reshard_after_forward"], ("in effect", "3 AllGathers and 3 ReduceScatters a step"))
        self.assertEqual(standing["fsdp2.forward_prefetch"],
                         ("in effect", "3 AllGathers before the second module computes"))


class SettingsOfFsdp2(Job):
    def test_prefetching_keeps_every_bit_on_two_and_on_four_ranks(self):
        for ranks in (2, 4):
            plain, _ = self.train("fsdp2", ranks=ranks)
            for asked in ({"forward_prefetch": 2, "backward_prefetch": 2}, {"reshard_after_forward": False}):
                with self.subTest(ranks=ranks, asked=asked):
                    losses, receipts = self.train("fsdp2", "--settings", self.settings(fsdp2=asked), ranks=ranks)
                    self.assertEqual(losses, plain)
                    self.assertEqual({r["standing"] for r in receipts}, {"in effect"}, receipts)

    def test_units_of_several_modules_keep_every_bit_on_two_and_on_four_ranks(self):
        model = ("--layers", "4")
        for ranks in (2, 4):
            plain, _ = self.train("fsdp2", ranks=ranks, model=model)
            for size, how in ((2, "3 ReduceScatters a step, 3 units of at most 2 modules"),
                              (3, "3 ReduceScatters a step, 3 units of at most 3 modules")):
                with self.subTest(ranks=ranks, size=size):
                    asked = {"modules_per_unit": size, "forward_prefetch": 1, "backward_prefetch": 1}
                    losses, receipts = self.train("fsdp2", "--settings", self.settings(fsdp2=asked), ranks=ranks, model=model)
                    self.assertEqual(losses, plain)
                    self.assertEqual({r["standing"] for r in receipts}, {"in effect"}, receipts)
                    self.assertIn(how, [r["how"] for r in receipts])

    def test_hybrid_sharding_changes_the_order_of_sums_only(self):
        plain, _ = self.train("fsdp2", ranks=4)
        losses, receipts = self.train("fsdp2", "--settings", self.settings(fsdp2={"shard_ranks": 2}), ranks=4)
        self.assertEqual([(r["standing"], r["how"]) for r in receipts],
                         [("in effect", "states are divided over 2 of 4 ranks, 3 AllReduces a step between groups")])
        self.assert_near(losses, plain)
        # Two groups add in another order than one sum of four. If no bit differs, the setting changed nothing.
        self.assertNotEqual(losses, plain)

    def test_what_cannot_be_grouped_is_said(self):
        _, receipts = self.train("fsdp2", "--settings", self.settings(fsdp2={"shard_ranks": 2, "modules_per_unit": 8}))
        self.assertEqual({r["standing"] for r in receipts}, {"not in effect"}, receipts)
        self.assertIn("rank 0: the framework has 2", [r["how"] for r in receipts])
        self.assertIn("rank 0: 2 ranks cannot be divided into groups of 2", [r["how"] for r in receipts])

    def test_configs_of_nccl_keep_every_bit_on_two_ranks(self):
        for parallel, configs in (("ddp", ("ring/simple/1", "tree/ll128", "ring/ll")), ("fsdp2", ("pat/simple/1", "ring/ll128"))):
            plain, _ = self.train(parallel)
            for config in configs:
                with self.subTest(parallel=parallel, config=config):
                    self.rules(config, *(["allreduce"] if parallel == "ddp" else ["allgather", "reducescatter"]))
                    losses, _ = self.train(parallel, "--settings", self.settings(rules="rules.toml"))
                    self.assertEqual(losses, plain)

    def test_configs_of_nccl_change_the_order_of_sums_only_on_four_ranks(self):
        """With HOSTCCL_SUM=rank_order, every algorithm sums each element in the order of ranks."""
        for order, same in (("rank_order", True), ("algorithm", False)):
            os.environ["HOSTCCL_SUM"] = order
            self.addCleanup(os.environ.pop, "HOSTCCL_SUM", None)
            plain, _ = self.train("fsdp2", ranks=4)
            for config in ("pat/simple/1", "ring/ll128"):
                with self.subTest(order=order, config=config):
                    self.rules(config, "allgather", "reducescatter")
                    losses, _ = self.train("fsdp2", "--settings", self.settings(rules="rules.toml"), ranks=4)
                    self.assertEqual(losses, plain) if same else self.assert_near(losses, plain)


class SettingsOfDdp(Job):
    def test_buckets_are_as_asked_and_losses_as_without(self):
        plain, receipts = self.train("ddp")
        self.assertEqual(receipts, [])
        # With a static graph, DDP rebuilds its buckets one step later.
        for asked in ({"bucket_cap_mb": 0.3}, {"bucket_cap_mb": 0.3, "static_graph": True}):
            with self.subTest(asked=asked):
                losses, receipts = self.train("ddp", "--settings", self.settings(ddp=asked))
                self.assertEqual(losses, plain)
                self.assertEqual([(r["setting"], r["standing"]) for r in receipts][:1], [("ddp.bucket_cap_mb", "in effect")])
                self.assertEqual(receipts[0]["how"], "3 AllReduces a step, 3 buckets")

    def test_what_does_not_take_effect_is_said(self):
        cases = [("ddp", (*PYTHON, "-I", "-c", ISOLATED, SCRIPT), "Python ran with -S, -I or -E"),
                 ("fsdp2", None, "does not use what the setting is for")]
        for parallel, python, reason in cases:
            with self.subTest(reason=reason):
                _, receipts = self.train(parallel, "--settings", self.settings(ddp={"bucket_cap_mb": 1000}), python=python)
                self.assertEqual(receipts[0]["standing"], "not in effect", receipts)
                self.assertIn(reason, receipts[0]["how"])

    def test_arguments_that_tune_tries_keep_every_bit(self):
        """On two ranks, all such arguments do. On four, views of buckets do, because they do not change the buckets."""
        cases = [(2, {"first_bucket_mb": 0.1}), (2, {"static_graph": True}), (2, {"gradient_as_bucket_view": True}),
                 (4, {"gradient_as_bucket_view": True})]
        plain = {ranks: self.train("ddp", ranks=ranks)[0] for ranks in (2, 4)}
        for ranks, asked in cases:
            with self.subTest(ranks=ranks, asked=asked):
                losses, receipts = self.train("ddp", "--settings", self.settings(ddp=asked), ranks=ranks)
                self.assertEqual(losses, plain[ranks])
                self.assertEqual([r["standing"] for r in receipts], ["in effect"], receipts)

    def test_a_first_bucket_leaves_the_scripts_size_of_further_ones(self):
        plain, _ = self.train("ddp", model=("--bucket-mb", "0.3"))
        losses, receipts = self.train("ddp", "--settings", self.settings(ddp={"first_bucket_mb": 0.1}),
                                      model=("--bucket-mb", "0.3"))
        self.assertEqual(losses, plain)
        self.assertEqual(receipts[0]["standing"], "in effect", receipts)
        # With PyTorch's default of 25 MiB for further buckets, a second AllReduce would have all the rest.
        self.assertRegex(receipts[0]["how"], "^[3-9] AllReduces a step")


class Tune(Job):
    def test_a_short_tune_leaves_settings_that_run(self):
        job = (SCRIPT, "--parallel", "ddp", *MODEL)
        done = self.dynamiccl("tune", "-n", "2", "--budget", "1s", "--try", "bucket_cap_mb=0.3", "bucket_cap_mb=1000", "--",
                              *forked_ranks.python(), *job)
        self.assertRegex(done.stdout, r"DDP on 2 ranks, 4 starts: 1 AllReduce of 1.05M together")
        self.assertIn("the same AllReduces as default", done.stdout)
        with open(self.path("tune/tune.json")) as file:
            tried = {row["setting"]: row for row in json.load(file)["tried"]}
        self.assertEqual(tried["bucket_cap_mb=0.3"]["seen"], "3 AllReduces a step, 3 buckets")
        self.dynamiccl("run", "-n", "2", "--settings", "tune/tuned.settings.json", "--", *PYTHON, *job)

    def test_what_cannot_be_tuned_is_said(self):
        done = self.dynamiccl("tune", "-n", "2", "--", *PYTHON, "-c", "print('no torch')", code=4)
        self.assertIn("no collective was recorded", done.stderr)
        self.assertIn("job.log", done.stderr)
        done = self.dynamiccl("tune", "-n", "2", "--", *PYTHON, "-c", "raise SystemExit(9)", code=4)
        self.assertIn("the job failed: rank", done.stderr)


if __name__ == "__main__":
    unittest.main()
