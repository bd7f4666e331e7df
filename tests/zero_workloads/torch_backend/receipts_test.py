# SPDX-License-Identifier: Apache-2.0
"""Tests the receipts of `dynamiccl run --settings` on real jobs under torchrun, over hostccl with two ranks.

Torchrun and the ranks are forks (forked_ranks.py), except in the cases of STARTED. In twelve jobs a setting has no
effect, although most of them passed it to the framework. The receipt must state this. In twelve other jobs every
setting has its effect, and each receipt must state that.
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
MODEL = ["--layers", "4", "--hidden", "96", "--vocabulary", "256", "--sequence", "32", "--steps", "10"]
# Each case is a script. It may change torch, and then runs the example.
CASE = """
import runpy, sys
import torch
import torch.distributed as dist
import torch.distributed.fsdp as fsdp
import torch.nn.parallel as parallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

Ddp = parallel.DistributedDataParallel
{body}
sys.argv[0] = {script!r}
runpy.run_path({script!r}, run_name="__main__")
"""
OWN_REDUCTION = """
class PerParameter(Ddp):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.register_comm_hook(None, self.reduce)

    @staticmethod
    def reduce(_state, bucket):
        for gradient in bucket.gradients():
            dist.all_reduce(gradient)
        return dist.all_reduce(bucket.buffer()[:1].clone(), async_op=True).get_future().then(
            lambda _: bucket.buffer() / dist.get_world_size())

parallel.DistributedDataParallel = PerParameter
"""
UNWRAPPED = "Ddp.__init__ = Ddp.__init__.__wrapped__"
NO_SYNC = """
class Unsynchronised(Ddp):
    def forward(self, *inputs):
        self.require_backward_grad_sync = False
        return super().forward(*inputs)

def reduce(optimizer, _arguments, _named):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            dist.all_reduce(parameter.grad)

register_optimizer_step_pre_hook(reduce)
parallel.DistributedDataParallel = Unsynchronised
"""
STATIC_IGNORED = """
class Dynamic(Ddp):
    def _set_static_graph(self):
        pass

parallel.DistributedDataParallel = Dynamic
"""
CLONED_GRADIENTS = """
def clone(optimizer, _arguments, _named):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = parameter.grad.clone()

register_optimizer_step_pre_hook(clone)
"""
RESHARDED_AGAIN = """
shard = fsdp.fully_shard
def fully_shard(module, **named):
    shard(module, **named).set_reshard_after_forward(True)
    return module
fsdp.fully_shard = fully_shard
"""
# Before each forward pass, the program turns prefetching off itself.
OWN_PREFETCH = """
shard = fsdp.fully_shard
def own_order(root, _inputs):
    for module in root.modules():
        if isinstance(module, fsdp.FSDPModule):
            module.set_modules_to_{direction}_prefetch([])
def fully_shard(module, **named):
    shard(module, **named).register_forward_pre_hook(own_order, prepend=True)
    return module
fsdp.fully_shard = fully_shard
"""
SUBCLASS = """
class Named(Ddp):
    def __init__(self, module, **named):
        super().__init__(module, **named)

parallel.DistributedDataParallel = Named
"""
COMPRESSED = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

class Compressed(Ddp):
    def __init__(self, module, **named):
        super().__init__(module, **named)
        self.register_comm_hook(None, fp16_compress_hook)

parallel.DistributedDataParallel = Compressed
"""
UNUSED = """
class Unused(Ddp):
    def __init__(self, module, **named):
        super().__init__(module, find_unused_parameters=True, **named)

parallel.DistributedDataParallel = Unused
"""
# A sitecustomize that imitates a release of torch in which the argument has another name.
RENAMED = """
import importlib.abc, importlib.machinery, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "torch.nn.parallel.distributed":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            constructor = module.DistributedDataParallel.__init__
            def construct(self, module, bucket_megabytes=None, **named):
                constructor(self, module, bucket_cap_mb=bucket_megabytes, **named)
            module.DistributedDataParallel.__init__ = construct
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
RENAMED_BODY = """
class Renamed(Ddp):
    def __init__(self, module, bucket_cap_mb):
        super().__init__(module, bucket_megabytes=bucket_cap_mb)

parallel.DistributedDataParallel = Renamed
"""
BUCKET = {"bucket_cap_mb": 0.3}
VIEWS = {"gradient_as_bucket_view": True}
# Name, group of settings, settings, script, and the text that the receipt must contain.
WITHOUT_EFFECT = [
    ("PYTHONPATH replaced", "ddp", BUCKET, "", "PYTHONPATH was replaced"),
    ("settings removed from the environment", "ddp", BUCKET, "", "its environment was changed"),
    ("another file on one rank", "ddp", BUCKET, "", "not all ranks have the same settings"),
    ("argument renamed", "ddp", BUCKET, RENAMED_BODY, "has no such argument"),
    ("constructor unwrapped", "ddp", BUCKET, UNWRAPPED, "saw no DDP"),
    ("gradients reduced one by one", "ddp", BUCKET, OWN_REDUCTION, "do not travel in DDP's buckets"),
    ("gradients reduced by the program", "ddp", BUCKET, NO_SYNC, "do not travel in DDP's buckets"),
    ("static graph ignored by a subclass", "ddp", {"static_graph": True}, STATIC_IGNORED, "the framework has false"),
    ("gradients cloned", "ddp", {**VIEWS, **BUCKET}, CLONED_GRADIENTS, "gradients lie in 53 pieces of memory"),
    ("resharded by the program", "fsdp2", {"reshard_after_forward": False}, RESHARDED_AGAIN, "parameters are gathered again"),
    ("forward order of the program", "fsdp2", {"forward_prefetch": 2}, OWN_PREFETCH.format(direction="forward"),
     "2 AllGathers before the second module computes, not 4"),
    ("backward order of the program", "fsdp2", {"backward_prefetch": 2}, OWN_PREFETCH.format(direction="backward"),
     "2 AllGathers of the backward pass before its first ReduceScatter, not 3"),
]
WITH_EFFECT = [
    ("small buckets", "ddp", BUCKET, ""),
    ("a first bucket", "ddp", {"first_bucket_mb": 0.1, **BUCKET}, ""),
    ("static graph", "ddp", {"static_graph": True}, ""),
    ("views of buckets", "ddp", {**VIEWS, **BUCKET}, ""),
    ("no views, no static graph", "ddp", {"gradient_as_bucket_view": False, "static_graph": False, **BUCKET}, ""),
    ("a subclass", "ddp", {**VIEWS, **BUCKET, "static_graph": True}, SUBCLASS),
    ("compressed gradients", "ddp", BUCKET, COMPRESSED),
    ("unused parameters are looked for", "ddp", {"static_graph": False, **BUCKET}, UNUSED),
    ("parameters kept", "fsdp2", {"reshard_after_forward": False}, ""),
    ("parameters resharded", "fsdp2", {"reshard_after_forward": True, "backward_prefetch": 2}, ""),
    ("one module ahead", "fsdp2", {"forward_prefetch": 1}, ""),
    ("two modules ahead", "fsdp2", {"forward_prefetch": 2, "backward_prefetch": 1}, ""),
]


# Cases whose ranks start Python themselves, as a user's ranks do: one that needs sitecustomize before torch is
# imported, and one for each framework.
STARTED = {"argument renamed", "views of buckets", "two modules ahead"}


class Receipts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dynamiccl_receipts_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def command(self, name, script):
        """Returns the torchrun command of a case. Some cases change the environment of a rank's Python."""
        python = (sys.executable, "-W", "ignore") if name in STARTED else forked_ranks.python()
        other = self.write("other.json", '{"format": "dynamiccl-settings", "version": 1, "ddp": {"bucket_cap_mb": 5}}')
        changed = {
            "PYTHONPATH replaced": ["env", f"PYTHONPATH={os.environ['PYTHONPATH'].split(os.pathsep)[0]}"],
            "settings removed from the environment": ["env", "-u", "DYNAMICCL_FRAMEWORK_SETTINGS"],
            "another file on one rank": ["sh", "-c", f'[ "$RANK" = 0 ] || export DYNAMICCL_FRAMEWORK_SETTINGS={other}; '
                                         'exec "$@"', "sh"],
        }
        return [*python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python",
                *changed.get(name, []), *python, script]

    def receipts(self, name, group, settings, body):
        script = self.write("case.py", CASE.format(body=body, script=SCRIPT))
        file = self.write("s.json", json.dumps({"format": "dynamiccl-settings", "version": 1, group: settings}))
        environment = {**os.environ, "NO_COLOR": "1"}
        if name == "argument renamed":
            site = os.path.dirname(self.write("site/sitecustomize.py", RENAMED))
            environment["PYTHONPATH"] = os.pathsep.join([site, environment["PYTHONPATH"]])
        said = os.path.join(self.folder, "run.json")
        done = subprocess.run([DYNAMICCL, "run", "--settings", file, "--json", said, "--", *self.command(name, script),
                               "--parallel", group, *MODEL],
                              capture_output=True, text=True, timeout=300, cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(said) as file:
            return json.load(file)["settings"]

    def test_a_setting_without_effect_is_found(self):
        for name, group, settings, body, words in WITHOUT_EFFECT:
            with self.subTest(case=name):
                # The tested setting comes first. Other settings only make its effect visible.
                asked = next(iter(settings))
                row = next(r for r in self.receipts(name, group, settings, body) if r["setting"] == f"{group}.{asked}")
                print(f"{name}: {row['setting']}: {row['standing']}: {row['how']}", flush=True)
                self.assertEqual(row["standing"], "not in effect", row)
                self.assertIn(words, row["how"])

    def test_a_setting_with_effect_is_confirmed(self):
        for name, group, settings, body in WITH_EFFECT:
            with self.subTest(case=name):
                rows = self.receipts(name, group, settings, body)
                for row in rows:
                    print(f"{name}: {row['setting']}: {row['standing']}: {row['how']}", flush=True)
                self.assertEqual(len(rows), len(settings))
                self.assertEqual({row["standing"] for row in rows}, {"in effect"}, rows)


if __name__ == "__main__":
    unittest.main()
