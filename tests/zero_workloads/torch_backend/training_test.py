# SPDX-License-Identifier: Apache-2.0
"""Tests PyTorch's DDP and FSDP2 on a small GPT over this backend.

Losses must be those over gloo, and calls those of the generators. The recorded runs use torchrun and
`dynamiccl record`, as a user does.
"""
import csv
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

from ranks import run_ranks

SOURCE = os.environ["DYNAMICCL_SOURCE_DIR"]
DYNAMICCL = os.environ["DYNAMICCL_PROGRAM"]
SCRIPT = os.path.join(SOURCE, "zero_workloads/torch_backend/examples/train_gpt.py")
STEPS = 3
MODEL = "gpt:layers=4,hidden=256,vocabulary=8192,sequence=64"  # the script's defaults
SMALL = ["--layers", "2", "--hidden", "64", "--vocabulary", "256", "--sequence", "32"]

_spec = importlib.util.spec_from_file_location("train_gpt", SCRIPT)
train_gpt = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(train_gpt)


def losses_of(backend, world, arguments):
    """Returns the losses of each rank as text that keeps every bit."""
    options = train_gpt.parse(["--steps", "6", *arguments])
    return run_ranks(lambda: [loss.hex() for loss in train_gpt.train(options)[0]], world, backend=backend)


def dynamiccl(*arguments):
    done = subprocess.run([DYNAMICCL, *arguments], capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise AssertionError(f"dynamiccl {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def calls_in(trace):
    """Returns the collective, type, operator and bytes of each rank's calls, in order."""
    ranks = {}
    for row in csv.DictReader(io.StringIO(dynamiccl("trace", "export", "--to", "csv", trace))):
        call = (row["collective"], row["data_type"], row["op"], int(row["bytes"]))
        ranks.setdefault(int(row["rank"]), []).append(call)
    return ranks


def recorded(folder, arguments, of_record=()):
    """Returns the calls of a run under torchrun, and the losses of both ranks."""
    trace, report = os.path.join(folder, "run.ctrace"), os.path.join(folder, "rank{rank}.json")
    torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = [SCRIPT, "--steps", str(STEPS), "--json", report, *arguments]
    dynamiccl("record", "-q", "-o", trace, *of_record, "--", *torchrun, *script)
    losses = []
    for rank in range(2):
        with open(report.format(rank=rank)) as file:
            losses.append(json.load(file)["losses"])
    return calls_in(trace), losses


def generated(folder, framework, *settings):
    trace = os.path.join(folder, "generated.ctrace")
    dynamiccl("trace", "generate", "--framework", framework, "--model", MODEL, "--data-parallel", "2", "--steps",
              str(STEPS), "-o", trace, *settings)
    return calls_in(trace)


class AdaptiveMode(unittest.TestCase):
    def test_calls_and_steps_are_timed(self):
        """Python loads hostccl only for its extension. The guard must still find hostccl's events and the profiler."""
        with tempfile.TemporaryDirectory() as folder:
            metrics = os.path.join(folder, "{rank}.prom")
            settings = [f"DYNAMICCL_METRICS={metrics.format(rank='%r')}", "DYNAMICCL_LOG=info"]
            script = [sys.executable, "-W", "ignore", SCRIPT, "--parallel", "ddp", "--steps", "100", *SMALL]
            done = subprocess.run(["env", *settings, DYNAMICCL, "run", "-n", "2", "--mode", "adaptive", "--", *script],
                                  capture_output=True, text=True, timeout=900)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(metrics.format(rank=0)) as file:
                self.assertIn("dynamiccl_collective_seconds_count{", file.read())
            self.assertIn("timed by the device", done.stderr)


class LossesAsOverGloo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch._dynamo  # noqa: F401, once here, because otherwise each forked rank would import it to wrap its model

    def test_two_ranks_to_the_bit(self):
        for arguments in (["--parallel", "ddp"], ["--parallel", "ddp", "--bucket-mb", "0.1"], ["--parallel", "fsdp2"]):
            with self.subTest(arguments=arguments):
                self.assertEqual(losses_of("dynamiccl", 2, SMALL + arguments), losses_of("gloo", 2, SMALL + arguments))

    def test_three_and_four_ranks(self):
        """Sums of three or more numbers are rounded in another order. So losses may differ by 1e-6 of their value."""
        for world in (3, 4):
            for parallel in ("ddp", "fsdp2"):
                with self.subTest(world=world, parallel=parallel):
                    ours, gloos = (losses_of(backend, world, SMALL + ["--parallel", parallel])
                                   for backend in ("dynamiccl", "gloo"))
                    for mine, theirs in zip(sum(ours, []), sum(gloos, [])):
                        self.assertAlmostEqual(float.fromhex(mine) / float.fromhex(theirs), 1.0, delta=1e-6)


class RecordedCalls(unittest.TestCase):
    """Tests what the preloaded recorder sees of PyTorch under torchrun, from construction to the last step."""
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dynamiccl_torch_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_ddp(self):
        calls, losses = recorded(self.folder, ["--parallel", "ddp"])
        self.assertEqual(calls, generated(self.folder, "ddp"))
        options = train_gpt.parse(["--steps", str(STEPS)])
        self.assertEqual(losses, run_ranks(lambda: [loss.hex() for loss in train_gpt.train(options)[0]], 2, backend="gloo"))

    def test_fsdp2_under_rules(self):
        """Rules must decide PyTorch's calls equally on both ranks, and must not change the calls."""
        rules, log = os.path.join(self.folder, "rules.csv"), os.path.join(self.folder, "decisions.%r")
        with open(rules, "w") as file:
            file.write("allgather,0,18446744073709551615,ring,ll,3,-1,-1\n")
        calls, _ = recorded(self.folder, ["--parallel", "fsdp2"], ["--rules", rules, "--decision-log", log])
        self.assertEqual(calls, generated(self.folder, "fsdp2"))
        decisions = [open(log.replace("%r", str(rank))).read() for rank in range(2)]
        self.assertEqual(decisions[0], decisions[1])
        self.assertRegex(decisions[0], r"AllGather 3159040 \S+ Ring/LL/3 rule")  # a block's gather


if __name__ == "__main__":
    unittest.main()
