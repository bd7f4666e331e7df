# SPDX-License-Identifier: Apache-2.0
"""Tests `dynamiccl run --settings` on a script that trains with DeepSpeed, over hostccl with two ranks.

The build's Python does not contain DeepSpeed. Without DeepSpeed this program prints one line that says so, and ctest
counts the test as skipped. To run it with a Python that has torch and DeepSpeed:

    DYNAMICCL_SOURCE_DIR=. DYNAMICCL_PROGRAM=build/release/bin/dynamiccl PYTHONPATH=build/release/lib/python PYTHON \\
        tests/zero_workloads/torch_backend/deepspeed_test.py
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

DYNAMICCL = os.environ["DYNAMICCL_PROGRAM"]
SCRIPT = """
import argparse, json
import deepspeed, torch
import torch.distributed as dist
from deepspeed.comm import torch as backend

# DeepSpeed compiles an extension for shared memory at its first start, which these calls do not use.
backend.build_shm_op = lambda: None
parser = argparse.ArgumentParser()
parser.add_argument("--out")
parser = deepspeed.add_config_arguments(parser)
options = parser.parse_args()
torch.set_num_threads(1)
deepspeed.init_distributed(dist_backend="dynamiccl")
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
engine = deepspeed.initialize(args=options, model=model, model_parameters=model.parameters())[0]
losses = []
for step in range(10):
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    inputs = torch.randn(4, 64, generator=generator)
    loss = (engine(inputs) - inputs).square().mean()
    engine.backward(loss)
    engine.step()
    losses.append(loss.item().hex())
with open(f"{options.out}.{dist.get_rank()}", "w") as file:
    json.dump(losses, file)
"""
# Six layers of 64 x 64 with biases. A bucket of 4200 elements has room for the 4096 + 64 gradients of one layer only.
SMALL = {"reduce_bucket_size": 4200}
STAGE_3 = {**SMALL, "stage3_prefetch_bucket_size": 9000, "stage3_param_persistence_threshold": 0}


class DeepSpeed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dynamiccl_deepspeed_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("train.py", SCRIPT)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def train(self, stage, settings):
        """Returns the losses of both ranks, and the receipts by setting. The configuration file must not change."""
        config = json.dumps({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": stage},
                             "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}})
        self.write("ds.json", config)
        self.write("s.json", json.dumps({"format": "dynamiccl-settings", "version": 1, "deepspeed": settings}))
        command = [DYNAMICCL, "run", "--settings", "s.json", "--json", "run.json", "--", sys.executable, "-W", "ignore", "-m",
                   "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py", "--deepspeed_config", "ds.json",
                   "--out", self.path("losses")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=self.folder,
                              env={**os.environ, "DS_ACCELERATOR": "cpu", "NO_COLOR": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.path("ds.json")) as file:
            self.assertEqual(file.read(), config)
        with open(self.path("run.json")) as file:
            receipts = {row["setting"]: (row["standing"], row["how"]) for row in json.load(file)["settings"]}
        losses = []
        for rank in range(2):
            with open(self.path(f"losses.{rank}")) as file:
                losses.append(json.load(file))
        return losses, receipts

    def test_buckets_are_as_asked_and_losses_as_without(self):
        for stage, calls in ((1, "AllReduces"), (2, "AllReduces"), (3, "ReduceScatters")):
            plain, _ = self.train(stage, {})
            for settings in ({**(STAGE_3 if stage == 3 else SMALL), "overlap_comm": stage != 3}, {"reduce_bucket_size": 100_000}):
                with self.subTest(stage=stage, settings=settings):
                    losses, receipts = self.train(stage, settings)
                    self.assertEqual(losses, plain)
                    print(stage, receipts, flush=True)
                    overlap = receipts.pop("deepspeed.overlap_comm", ("not provable", ""))
                    self.assertEqual(overlap[0], "not provable")
                    self.assertEqual({standing for standing, _ in receipts.values()}, {"in effect"}, receipts)
                    how = receipts["deepspeed.reduce_bucket_size"][1]
                    self.assertIn(f"6 {calls} a step, of at most 4160" if settings["reduce_bucket_size"] == 4200
                                  else f"1 {calls[:-1]} a step, of at most 24960", how)

    def test_what_has_no_effect_is_said(self):
        _, receipts = self.train(1, {"allgather_bucket_size": 5000, "stage3_prefetch_bucket_size": 5000})
        self.assertEqual({standing for standing, _ in receipts.values()}, {"not in effect"}, receipts)
        self.assertIn("does not read it", receipts["deepspeed.allgather_bucket_size"][1])
        self.assertIn("stage 1 has no such setting", receipts["deepspeed.stage3_prefetch_bucket_size"][1])

    def test_a_tune_tries_its_settings(self):
        self.write("ds.json", json.dumps({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2},
                                          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}))
        done = subprocess.run([DYNAMICCL, "tune", "--budget", "1s", "--try", "reduce_bucket_size=4200", "--", sys.executable,
                               "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                               "train.py", "--deepspeed_config", "ds.json", "--out", self.path("losses")],
                              capture_output=True, text=True, timeout=300, cwd=self.folder,
                              env={**os.environ, "DS_ACCELERATOR": "cpu", "NO_COLOR": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("DeepSpeed on 2 ranks", done.stdout)
        self.assertIn("job   ZeRO stage 2, ", done.stdout)
        with open(self.path("tune/tune.json")) as file:
            tried = {row["setting"]: row["seen"] for row in json.load(file)["tried"]}
        self.assertEqual(tried["reduce_bucket_size=4200"], "6 AllReduces a step, of at most 4160 elements")


if __name__ == "__main__":
    if importlib.util.find_spec("deepspeed") is None:
        print("skipped: no DeepSpeed in this Python")
    else:
        unittest.main()
