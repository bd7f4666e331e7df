# SPDX-License-Identifier: Apache-2.0
"""Tests `dynamiccl run --settings` on small jobs that differ from the example.

They have several models, change optimizers, accumulate gradients, compile modules, or use FSDP2 by its old name. The
receipts must not doubt a setting that is in effect."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import forked_ranks

DYNAMICCL = os.environ["DYNAMICCL_PROGRAM"]
BEGIN = """
import sys, torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
torch.set_num_threads(1)
dist.init_process_group("dynamiccl")
torch.manual_seed(0)
x = torch.randn(8, 64)

def blocks(count):
    return nn.Sequential(*[nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)) for _ in range(count)])

def train(model, optimizer, passes=1, between=lambda number: None):
    optimizer.zero_grad()
    for number in range(passes):
        between(number)
        model(x).pow(2).mean().backward()
    optimizer.step()
"""
SHARD = """
from torch.distributed.device_mesh import init_device_mesh
from {package} import fully_shard
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = nn.Sequential(nn.Linear(64, 64), *blocks(4))
for block in list(model)[1:]:
    {compile}
    fully_shard(module=block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(12):
    train(model, optimizer, {passes}, {between})
"""
NEW, OLD = "torch.distributed.fsdp", "torch.distributed._composable.fsdp"
IN_TURNS = """
one, other = DDP(blocks(3)), DDP(blocks(2))
optimizers = torch.optim.SGD(one.parameters(), 0.01), torch.optim.SGD(other.parameters(), 0.01)
for step in range(20):
    train(other, optimizers[1])
    train(nn.Sequential(one, other), optimizers[0])
"""
TOGETHER = """
one, other = DDP(blocks(3)), DDP(blocks(2))
optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], 0.01)
for step in range(12):
    train(nn.Sequential(one, other), optimizer)
"""
WARM_UP = """
model = DDP(blocks(3))
warm_up, optimizer = torch.optim.SGD(model.parameters(), 0.001), torch.optim.AdamW(model.parameters(), 0.001)
for step in range(25):
    train(model, warm_up if step < 3 else optimizer)
    {drop}
"""
STATISTICS = """
model = DDP(nn.Sequential(blocks(3), nn.Linear(64, 1)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(12):
    train(model, optimizer, between=lambda number: dist.all_reduce(torch.zeros(128)))
"""


def sharded(package=NEW, compile="pass", passes=1, between="lambda number: None"):
    return SHARD.format(package=package, compile=compile, passes=passes, between=between)


LAST_SYNCHRONISES = "lambda number: model.set_requires_gradient_sync(number == 2)"
BUCKET = {"bucket_cap_mb": 0.1}


class OddJobs(unittest.TestCase):
    def receipts(self, body, group, settings, ranks=2, end="", python=None):
        """Returns the standing of each setting, and what the job printed. Without `python` the ranks are forks."""
        with tempfile.TemporaryDirectory(prefix="dynamiccl_odd_jobs_") as folder:
            def write(name, text):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
                return os.path.join(folder, name)

            script, said = write("job.py", BEGIN + body + end), os.path.join(folder, "run.json")
            file = write("s.json", json.dumps({"format": "dynamiccl-settings", "version": 1, group: settings}))
            done = subprocess.run([DYNAMICCL, "run", "-n", str(ranks), "--settings", file, "--json", said, "--",
                                   *(python or forked_ranks.python()), script], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(said) as written:
                rows = json.load(written)["settings"]
        return {row["setting"].split(".")[1]: (row["standing"], row["how"]) for row in rows}, done.stdout

    def assert_in_effect(self, seen, *settings):
        for setting in settings:
            self.assertEqual(seen[setting][0], "in effect", seen)

    def test_several_models_and_optimizers(self):
        seen, _ = self.receipts(TOGETHER, "ddp", BUCKET)
        self.assertEqual(seen["bucket_cap_mb"], ("in effect", "5 AllReduces a step, 5 buckets"))
        seen, _ = self.receipts(IN_TURNS, "ddp", BUCKET)
        self.assertEqual(seen["bucket_cap_mb"][0], "not provable", seen)
        for drop in ("pass", "if step == 3: warm_up = None"):
            with self.subTest(drop=drop):
                seen, _ = self.receipts(WARM_UP.format(drop=drop), "ddp", BUCKET)
                self.assert_in_effect(seen, "bucket_cap_mb")

    def test_statistics_beside_the_gradients(self):
        seen, _ = self.receipts(STATISTICS, "ddp", BUCKET)
        self.assert_in_effect(seen, "bucket_cap_mb")

    def test_accumulated_gradients_of_sharded_modules(self):
        for between in ("lambda number: None", LAST_SYNCHRONISES):
            for kept in (False, True):
                with self.subTest(between=between, reshard=kept):
                    seen, _ = self.receipts(sharded(passes=3, between=between), "fsdp2",
                                            {"reshard_after_forward": kept, "forward_prefetch": 1})
                    self.assert_in_effect(seen, "reshard_after_forward", "forward_prefetch")

    def test_the_old_name_of_fsdp2(self):
        seen, _ = self.receipts(sharded(OLD), "fsdp2", {"shard_ranks": 2, "modules_per_unit": 2}, ranks=4)
        self.assert_in_effect(seen, "shard_ranks", "modules_per_unit")

    def test_gathers_that_the_program_does_not_wait_for_are_reported(self):
        startup = os.path.join(os.environ["PYTHONPATH"].split(os.pathsep)[0], "dynamiccl_startup")
        for before, waits in (("None", True), ("model._set_unshard_async_op(True)", False)):
            with tempfile.TemporaryDirectory(prefix="dynamiccl_odd_jobs_") as folder:
                job = BEGIN + sharded(between="lambda number: " + before)
                environment = {**os.environ, "PYTHONPATH": startup + os.pathsep + os.environ["PYTHONPATH"],
                               "DYNAMICCL_FRAMEWORK_REPORT": os.path.join(folder, "%r.json")}
                subprocess.run([DYNAMICCL, "run", "-q", "-n", "2", "--", sys.executable, "-W", "ignore", "-c", job], check=True,
                               timeout=300, env=environment)
                with open(os.path.join(folder, "0.json")) as file:
                    self.assertEqual(json.load(file)["frameworks"]["fsdp2"]["on_host"], waits)

    def test_the_hook_is_not_compiled(self):
        # Each rank prints with one write, so that the output of two ranks is not mixed.
        count = "\nimport torch._dynamo.utils as dynamo\nsys.stdout.write(f\"frames {dynamo.counters['frames']['total']}\\n\")\n"
        plain = subprocess.run([DYNAMICCL, "run", "-q", "-n", "2", "--", *forked_ranks.python(), "-c",
                                BEGIN + sharded(compile='block.compile(backend="eager")') + count],
                               capture_output=True, text=True, timeout=300)
        # The hook acts when Dynamo is imported, so these ranks must not be forks of a process that has imported it.
        seen, out = self.receipts(sharded(compile='block.compile(backend="eager")'), "fsdp2", {"forward_prefetch": 1}, end=count,
                                  python=(sys.executable, "-W", "ignore"))
        self.assertIn("frames", plain.stdout)
        self.assertEqual(sorted(out.split()), sorted(plain.stdout.split()))
        self.assert_in_effect(seen, "forward_prefetch")


if __name__ == "__main__":
    unittest.main()
