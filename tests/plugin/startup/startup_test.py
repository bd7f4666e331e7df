# SPDX-License-Identifier: Apache-2.0
"""Tests plugin/startup with a stand-in for torch: what it applies, what it must not change, and that programs start."""
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

STARTUP = os.environ["DYNAMICCL_STARTUP"]
sys.path.insert(0, STARTUP)
from dynamiccl_settings import agreement  # noqa: E402

DDP = "torch/nn/parallel/distributed.py"
# The part of torch's class that the hook changes. {arguments} are those of the constructor.
PARALLEL = """
class Handle:
    def remove(self): pass
class DistributedDataParallel:
    def __init__(self, module, {arguments}):
        self.bucket_bytes_cap = int((locals().get("bucket_cap_mb") or 25) * 2**20)
        self.static_graph = locals().get("static_graph")
        print("constructed", locals().get("bucket_cap_mb"), locals().get("static_graph"))
    def parameters(self): return []
    def register_forward_pre_hook(self, hook): return Handle()
"""


def settings_text(**groups):
    """A settings file with its checksum, as docs/formats/settings.md describes it."""
    blank = json.dumps({"format": "dynamiccl-settings", "version": 1, **groups, "checksum": "0" * 64})
    return blank.replace("0" * 64, hashlib.sha256(blank.encode()).hexdigest())


class Program(unittest.TestCase):
    """Runs scripts with a stand-in for torch."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dynamiccl_startup_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.torch(arguments="bucket_cap_mb=None, static_graph=False")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(textwrap.dedent(text))
        return self.path(name)

    def torch(self, arguments):
        for package in ("torch", "torch/nn", "torch/nn/parallel"):
            self.write(package + "/__init__.py", "")
        self.write(DDP, PARALLEL.format(arguments=arguments))

    def run_script(self, script, *flags, settings=None, launcher=None):
        """Returns standard output, standard error and the report, or None if there is no report. `launcher` has the
        variables of a launcher other than torchrun."""
        environment = {**os.environ, "PYTHONPATH": STARTUP + os.pathsep + self.folder, **(launcher or {"RANK": "1"}),
                       "PYTHONDONTWRITEBYTECODE": "1", "DYNAMICCL_FRAMEWORK_REPORT": self.path("report.json")}
        if settings is not None:
            environment["DYNAMICCL_FRAMEWORK_SETTINGS"] = self.write("s.json", settings)
        done = subprocess.run([sys.executable, *flags, self.write("script.py", script)], env=environment,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = None
        if os.path.exists(self.path("report.json")):
            with open(self.path("report.json")) as file:
                report = json.load(file)
        return done.stdout, done.stderr, report


class Startup(Program):
    USE = """
        from torch.nn.parallel.distributed import DistributedDataParallel
        DistributedDataParallel("model", bucket_cap_mb=7)
    """

    def test_a_setting_replaces_what_the_program_gave(self):
        out, err, report = self.run_script(self.USE, settings=settings_text(ddp={"bucket_cap_mb": 100, "static_graph": True}))
        self.assertEqual((out, err), ("constructed 100 True\n", ""))
        self.assertEqual(report["settings"]["ddp.bucket_cap_mb"], {"asked": 100, "in_effect": 100.0, "reason": ""})
        self.assertEqual((report["rank"], report["frameworks"]["ddp"]["constructed"]), (1, 1))

    def test_without_settings_the_program_is_only_watched(self):
        out, err, report = self.run_script(self.USE)
        self.assertEqual((out, err), ("constructed 7 False\n", ""))
        self.assertEqual(report["frameworks"]["ddp"]["bucket_cap_mb"], 7.0)

    def test_an_argument_that_this_torch_lacks_is_left_alone_with_one_line(self):
        self.torch(arguments="bucket_cap_mb=None")
        out, err, report = self.run_script(self.USE, settings=settings_text(ddp={"static_graph": True}))
        self.assertEqual(out, "constructed 7 None\n")
        self.assertRegex(err, r"\Adynamiccl: ddp.static_graph is left alone: .* no such argument\n\Z")
        self.assertIn("no such argument", report["settings"]["ddp.static_graph"]["reason"])

    def test_a_subclass_that_decides_itself_shows_in_the_report(self):
        _, _, report = self.run_script("""
            from torch.nn.parallel import distributed
            class Own(distributed.DistributedDataParallel):
                @property
                def bucket_bytes_cap(self): return 2**20
                @bucket_bytes_cap.setter
                def bucket_bytes_cap(self, value): pass
            Own("model")
        """, settings=settings_text(ddp={"bucket_cap_mb": 100}))
        self.assertEqual(report["settings"]["ddp.bucket_cap_mb"]["in_effect"], 1.0)

    def test_a_file_that_cannot_be_used_changes_nothing_and_says_so(self):
        whole = settings_text(ddp={"bucket_cap_mb": 100})
        damaged = {whole.replace("100", "101"): "checksum", whole[:-9]: "cut", whole.replace('n": 1', 'n": 2'): "version 2",
                   settings_text(ddp={"bucket_cap": 1}): "not known", settings_text(ddp={"bucket_cap_mb": True}): "not a number",
                   settings_text(ddp=[]): "no object", settings_text(dpd={"bucket_cap_mb": 1}): "dpd is not known",
                   settings_text(fsdp2={"shard_ranks": 1.5}): "not a whole number", settings_text(deepspeed={"reduce_bucket_size": 0}): "whole number", "[]": "no settings file"}
        for text, reason in damaged.items():
            with self.subTest(reason=reason):
                out, err, report = self.run_script(self.USE, settings=text)
                self.assertEqual(out, "constructed 7 False\n")
                self.assertRegex(err, rf"\Adynamiccl: no setting is applied: .*s\.json: .*{reason}.*\n\Z")
                self.assertIn(reason, report["error"])

    def test_a_program_without_torch_starts_as_ever(self):
        out, err, report = self.run_script("print('here')", settings="damaged")
        self.assertEqual((out, err, report), ("here\n", "", None))

    def test_flags_that_turn_the_hook_off_leave_no_report(self):
        for flag in ("-S", "-I"):
            with self.subTest(flag=flag):
                script = f"import sys; sys.path.append({self.folder!r})\n" + textwrap.dedent(self.USE)
                out, _, report = self.run_script(script, flag, settings=settings_text(ddp={"bucket_cap_mb": 100}))
                self.assertEqual((out, report), ("constructed 7 False\n", None))

    def test_the_next_sitecustomize_runs_too_and_its_failure_is_its_own(self):
        self.write("sitecustomize.py", "import sys; sys.own_site = 1")
        out, _, _ = self.run_script("import sys, sitecustomize; print(sys.own_site, sitecustomize.__file__)")
        self.assertEqual(out, f"1 {self.path('sitecustomize.py')}\n")
        self.write("sitecustomize.py", "raise ValueError('of the user')")
        out, err, _ = self.run_script(self.USE, settings=settings_text(ddp={"bucket_cap_mb": 100}))
        self.assertIn("of the user", err)
        self.assertEqual(out, "constructed 100 False\n")

    def test_a_sitecustomize_that_imports_torch_first_changes_nothing(self):
        self.write("sitecustomize.py", "import torch.nn.parallel.distributed")
        out, err, _ = self.run_script(self.USE, settings=settings_text(ddp={"bucket_cap_mb": 100}))
        self.assertEqual((out, err), ("constructed 100 False\n", ""))

    def test_the_launchers_own_variables_name_the_rank(self):
        for launcher in ({"OMPI_COMM_WORLD_RANK": "3", "SLURM_PROCID": "0"}, {"SLURM_PROCID": "3"}, {"RANK": "3", "SLURM_PROCID": "0"}):
            with self.subTest(launcher=launcher):
                _, _, report = self.run_script(self.USE, launcher=launcher)
                self.assertEqual(report["rank"], 3)

    def test_an_error_of_the_hook_is_one_line_and_the_program_goes_on(self):
        out, err, _ = self.run_script("""
            from torch.nn.parallel import distributed
            class Late(distributed.DistributedDataParallel):
                def __init__(self, *arguments):
                    super().__init__(*arguments)
                    self.own = []
                def parameters(self): return self.own
            for _ in range(2):
                print(Late("model").own)
        """, settings=settings_text(ddp={"bucket_cap_mb": 100}))
        self.assertEqual(out, "constructed 100 False\n[]\n" * 2)
        self.assertRegex(err, r"\Adynamiccl: the report of DDP failed and is left out: AttributeError: .*own.*\n\Z")

    def test_a_value_that_is_no_json_does_not_end_the_program(self):
        self.torch(arguments="bucket_cap_mb=None, static_graph=False")
        out, _, report = self.run_script("""
            from torch.nn.parallel import distributed
            class Odd(distributed.DistributedDataParallel):
                static_graph = property(lambda self: {1, 2}, lambda self, value: None)
            Odd("model")
        """, settings=settings_text(ddp={"static_graph": True}))
        self.assertEqual(out, "constructed None True\n")
        self.assertEqual(report["settings"]["ddp.static_graph"]["in_effect"], "{1, 2}")

    def test_a_first_bucket_keeps_the_other_sizes_of_the_programs_list(self):
        self.torch(arguments="bucket_cap_mb=None, bucket_cap_mb_list=None")
        self.write(DDP, PARALLEL.format(arguments="bucket_cap_mb=None, bucket_cap_mb_list=None").replace(
            'locals().get("static_graph"))', "bucket_cap_mb_list)"))
        for given, asked, expected in (("bucket_cap_mb_list=[3, 50, 7]", {}, [0.5, 50, 7]), ("bucket_cap_mb_list=[3]", {}, [0.5, 3]),
                                       ("bucket_cap_mb=9", {}, [0.5, 9]), ("", {}, [0.5, 25]),
                                       ("bucket_cap_mb_list=[3, 50]", {"bucket_cap_mb": 5}, [0.5, 5])):
            with self.subTest(given=given, asked=asked):
                out, _, _ = self.run_script(f"""
                    from torch.nn.parallel.distributed import DistributedDataParallel
                    DistributedDataParallel("model", {given})
                """, settings=settings_text(ddp={"first_bucket_mb": 0.5, **asked}))
                self.assertTrue(out.endswith(f"{expected}\n"), out)

    def test_the_lists_of_several_objects_follow_one_another_while_they_live(self):
        self.write(DDP, PARALLEL.format(arguments="bucket_cap_mb=None").replace("def parameters(self): return []", """
    sizes = iter([[4, 8], [16], [32]])
    def parameters(self):
        import argparse
        self.own = getattr(self, "own", None) or next(self.sizes)
        return [argparse.Namespace(requires_grad=True, numel=lambda n=n: n, element_size=lambda: 1,
                                   device=argparse.Namespace(type="cpu")) for n in self.own]
    def _get_ddp_logging_data(self):
        return {"bucket_sizes": ", ".join(str(2 * n) for n in self.own)}
"""))
        _, err, report = self.run_script("""
            from torch.nn.parallel.distributed import DistributedDataParallel
            dropped = DistributedDataParallel("model")
            kept = DistributedDataParallel("model")
            del dropped
            last = DistributedDataParallel("model")
        """)
        self.assertEqual(err, "")
        ddp = report["frameworks"]["ddp"]
        self.assertEqual((ddp["constructed"], ddp["parameters"], ddp["buckets"], ddp["gradient_bytes"]), (3, [16, 32], [32, 64], 48))

    def test_a_torch_with_other_insides_is_left_alone(self):
        self.write(DDP, "DistributedDataParallel = None\n")
        out, err, _ = self.run_script("import torch.nn.parallel.distributed; print('imported')",
                                      settings=settings_text(ddp={"bucket_cap_mb": 100}))
        self.assertEqual(out, "imported\n")
        self.assertRegex(err, r"\Adynamiccl: torch.nn.parallel.distributed is left alone: .*\n\Z")

    def test_ranks_that_cannot_ask_each_other_yet_leave_the_settings_alone(self):
        os.environ["WORLD_SIZE"] = "2"
        self.addCleanup(os.environ.pop, "WORLD_SIZE")
        out, err, report = self.run_script(self.USE, settings=settings_text(ddp={"bucket_cap_mb": 100}))
        self.assertEqual(out, "constructed 7 False\n")
        self.assertRegex(err, r"\Adynamiccl: ddp.bucket_cap_mb is left alone: ranks cannot agree .*\n\Z")
        self.assertIn("cannot agree", report["settings"]["ddp.bucket_cap_mb"]["reason"])


# The part of FSDP2 that the hook changes.
SHARD = """
class FSDPModule: pass
def fully_shard(module, *, mesh=None, reshard_after_forward=None):
    \"\"\"Takes a module or a list[nn.Module].\"\"\"
    print("sharded", module.name, reshard_after_forward, mesh)
    return module
"""
MODULE = """
import torch.distributed
class Module:
    def __init__(self, name): self.name = name
    def modules(self): return [self]
    def register_forward_pre_hook(self, hook, prepend=False):
        print("watched")
"""


class Fsdp2(Program):
    NEW, OLD = "torch/distributed/fsdp/_fully_shard/_fully_shard.py", "torch/distributed/_composable/fsdp/fully_shard.py"

    def setUp(self):
        super().setUp()
        for package in ("torch/distributed", "torch/distributed/fsdp", "torch/distributed/fsdp/_fully_shard",
                        "torch/distributed/_composable", "torch/distributed/_composable/fsdp"):
            self.write(package + "/__init__.py", "")
        self.write("torch/distributed/__init__.py", "is_available = is_initialized = lambda: True\nget_world_size = lambda: 1\n")
        self.write("torch/distributed/fsdp/_fully_shard/__init__.py", "from ._fully_shard import FSDPModule, fully_shard\n")
        self.write("torch/distributed/fsdp/__init__.py", "from ._fully_shard import FSDPModule, fully_shard\n")
        self.write("torch/distributed/_composable/fsdp/__init__.py", "from .fully_shard import FSDPModule, fully_shard\n")
        self.write(self.NEW, SHARD)
        # Newer releases keep the old module, which imports everything from the new one.
        self.write(self.OLD, "from torch.distributed.fsdp import FSDPModule, fully_shard\n")
        self.write("model.py", MODULE)

    def shard(self, package="torch.distributed.fsdp", call="fully_shard(Module('a'))", **settings):
        return self.run_script(f"from {package} import fully_shard\nfrom model import Module\n{call}\n",
                               settings=settings_text(fsdp2=settings))

    def test_the_module_may_be_given_by_its_name(self):
        for call in ("fully_shard(Module('a'))", "fully_shard(module=Module('a'))", "fully_shard(mesh=None, module=Module('a'))"):
            with self.subTest(call=call):
                out, err, _ = self.shard(call=call, reshard_after_forward=False)
                self.assertEqual((out, err), ("sharded a False None\nwatched\n", ""))

    def test_wrong_arguments_are_reported_by_torch(self):
        for arguments in ("", "Module('a'), module=Module('b')", "Module('a'), None", "Module('a'), no=1"):
            with self.subTest(arguments=arguments):
                call = f"try: fully_shard({arguments})\nexcept TypeError as error: print(error)"
                out, err, _ = self.shard(call=call, reshard_after_forward=False)
                self.assertEqual(err, "")
                self.assertIn("fully_shard()", out)

    def test_the_old_name_is_wrapped_once(self):
        for package in ("torch.distributed._composable.fsdp", "torch.distributed.fsdp"):
            with self.subTest(package=package):
                out, err, report = self.shard(package, reshard_after_forward=True)
                self.assertEqual((out, err), ("sharded a True None\nwatched\n", ""))

    def test_a_release_that_has_the_old_name_alone_is_wrapped(self):
        self.write("torch/distributed/fsdp/__init__.py", "")
        self.write(self.OLD, SHARD)
        out, err, _ = self.shard("torch.distributed._composable.fsdp", reshard_after_forward=True)
        self.assertEqual((out, err), ("sharded a True None\nwatched\n", ""))

    def test_what_a_sitecustomize_has_imported_is_wrapped_in_all_packages(self):
        self.write("sitecustomize.py", "import torch.distributed._composable.fsdp")
        for package in ("torch.distributed._composable.fsdp", "torch.distributed.fsdp", "torch.distributed.fsdp._fully_shard"):
            with self.subTest(package=package):
                out, err, _ = self.shard(package, reshard_after_forward=True)
                self.assertEqual((out, err), ("sharded a True None\nwatched\n", ""))


# The part of DeepSpeed that the hook changes.
DEEPSPEED = """
import argparse, json
__version__ = "0.0.0"
class Engine:
    class _config:
        class zero_config: pass
    class optimizer: pass
    class module:
        named_parameters = classmethod(lambda cls: [])
        modules = classmethod(lambda cls: [argparse.Namespace(parameters=lambda recurse: [])])
    steps = 0
    def step(self): self.steps += 1
    zero_optimization_stage = lambda self: 1
    gradient_accumulation_steps = lambda self: 1
    is_gradient_accumulation_boundary = lambda self: True
def initialize(args=None, model=None, config=None, config_params=None):
    path = getattr(args, "deepspeed_config", None)
    assert config is None or path is None, "two configurations"
    config = config or config_params or json.load(open(path))
    print("initialized", json.dumps(config["zero_optimization"], sort_keys=True))
    for name, value in config["zero_optimization"].items():
        setattr(Engine.optimizer, name, value)
    return Engine(), None, None, None
"""


class DeepSpeed(Program):
    """DeepSpeed must get a copy of the configuration with the settings. The program's own must not change."""

    def setUp(self):
        super().setUp()
        for package in ("torch", "torch/distributed", "deepspeed", "deepspeed/runtime", "deepspeed/runtime/zero"):
            self.write(package + "/__init__.py", "")
        self.write("torch/distributed/__init__.py", "is_available = is_initialized = lambda: True\n"
                                                    "get_world_size = lambda: 1\n")
        self.write("deepspeed/__init__.py", DEEPSPEED)
        self.write("deepspeed/runtime/zero/config.py", """
            class DeepSpeedZeroConfig:
                model_fields = {"reduce_bucket_size": 0, "overlap_comm": 0, "prefetch_bucket_size": 0}
        """)

    def train(self, zero, by, **settings):
        """Runs a program that passes its configuration as a dictionary or a file, and prints whether it changed."""
        self.write("ds.json", json.dumps({"zero_optimization": zero}))
        given = {"config": "config=config", "config_params": "config_params=config", "path": "config='ds.json'",
                 "args": "args=args"}[by]
        out, err, report = self.run_script(f"""
            import argparse, json, os
            os.chdir({self.folder!r})
            import deepspeed
            text = open("ds.json").read()
            config, args = json.loads(text), argparse.Namespace(deepspeed_config="ds.json")
            deepspeed.initialize({given})[0].step()
            assert json.dumps(config) == text == open("ds.json").read() and args.deepspeed_config == "ds.json"
        """, settings=settings_text(deepspeed=settings))
        return out, err, report["settings"]

    def test_the_configuration_is_changed_however_it_is_given(self):
        for by in ("config", "config_params", "args"):
            with self.subTest(by=by):
                out, err, rows = self.train({"stage": 1, "reduce_bucket_size": 7}, by, reduce_bucket_size=5, overlap_comm=True)
                self.assertEqual((out, err), ('initialized {"overlap_comm": true, "reduce_bucket_size": 5, "stage": 1}\n', ""))
                self.assertEqual(rows["deepspeed.reduce_bucket_size"], {"asked": 5, "in_effect": 5, "reason": ""})

    def test_a_setting_replaces_its_other_name(self):
        out, _, _ = self.train({"stage": 3, "prefetch_bucket_size": 9}, "config", stage3_prefetch_bucket_size=5)
        self.assertEqual(out, 'initialized {"stage": 3, "stage3_prefetch_bucket_size": 5}\n')

    def test_what_the_stage_or_the_release_lacks_is_left_alone(self):
        cases = [({"stage": 1}, {"stage3_prefetch_bucket_size": 5}, "stage 1 has no such setting"),
                 ({"stage": 0}, {"reduce_bucket_size": 5}, "no stage of ZeRO"),
                 ({"stage": 3}, {"stage3_param_persistence_threshold": 5}, "this DeepSpeed has no such setting")]
        for zero, settings, reason in cases:
            with self.subTest(reason=reason):
                out, err, rows = self.train(zero, "config", **settings)
                self.assertEqual(out, f"initialized {json.dumps(zero)}\n")
                self.assertEqual(err.count("\n"), 1, err)
                self.assertIn(reason, rows[f"deepspeed.{next(iter(settings))}"]["reason"])

    def test_other_insides_leave_the_settings_alone_and_the_program_running(self):
        self.write("deepspeed/runtime/zero/config.py", "class DeepSpeedZeroConfig: pass\n")
        out, err, rows = self.train({"stage": 1, "reduce_bucket_size": 7}, "config", reduce_bucket_size=5)
        self.assertEqual(out, 'initialized {"reduce_bucket_size": 7, "stage": 1}\n')
        self.assertIn("dynamiccl: the change of DeepSpeed's configuration failed and is left out: AttributeError", err)
        self.assertIn("built otherwise", rows["deepspeed.reduce_bucket_size"]["reason"])


class Store:
    """The part of torch's store that the agreement uses."""

    def __init__(self):
        self._values, self._changed = {}, threading.Condition()

    def compare_set(self, key, expected, desired):
        with self._changed:
            if self._values.get(key, b"") == expected.encode():
                self._values[key] = desired.encode()
                self._changed.notify_all()
            return self._values[key]

    def add(self, key, amount):
        with self._changed:
            self._values[key] = self._values.get(key, 0) + amount
            return self._values[key]

    def wait(self, keys, limit):
        with self._changed:
            if not self._changed.wait_for(lambda: all(key in self._values for key in keys), limit.total_seconds()):
                raise RuntimeError("wait timeout")

    def get(self, key):
        return self._values[key]


class Agreement(unittest.TestCase):
    def verdicts(self, tokens, world=None, delays=None, limit_s=10):
        """Returns the answers to ranks with these tokens. Each rank asks after its delay."""
        store, answers = Store(), [None] * len(tokens)

        def ask(rank):
            time.sleep(delays[rank] if delays else 0)
            answers[rank] = agreement.verdict(store, world or len(tokens), tokens[rank], limit_s)

        threads = [threading.Thread(target=ask, args=(rank,)) for rank in range(len(tokens))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def test_all_ranks_with_the_same_settings_use_them(self):
        self.assertEqual(self.verdicts(["a"] * 8), [True] * 8)

    def test_one_rank_with_other_settings_is_enough_for_none(self):
        for rank in range(4):
            with self.subTest(rank=rank):
                self.assertEqual(self.verdicts(["b" if i == rank else "a" for i in range(4)]), [False] * 4)

    def test_a_rank_that_never_asks_is_enough_for_none(self):
        self.assertEqual(self.verdicts(["a"] * 3, world=4, limit_s=0.05), [False] * 3)

    def test_ranks_that_come_as_time_runs_out_all_get_the_same_answer(self):
        seen = set()
        for seed in range(60):
            source = random.Random(seed)
            answers = self.verdicts(["a"] * 4, delays=[source.uniform(0, 0.02) for _ in range(4)], limit_s=0.01)
            self.assertEqual(len(set(answers)), 1, f"seed {seed}: {answers}")
            seen.update(answers)
        self.assertEqual(seen, {True, False}, "the limit lies among the delays")

    def test_settings_torch_and_a_file_that_cannot_be_used_tell_ranks_apart(self):
        tokens = {agreement.token_of(settings, torch)
                  for settings, torch in (({"ddp": {"static_graph": True}}, "2.13"), ({"ddp": {}}, "2.13"), ({"ddp": {}}, "2.12"), (None, "2.13"))}
        self.assertEqual(len(tokens), 4)
        self.assertEqual(agreement.token_of({"a": 1, "b": 2}, "2"), agreement.token_of({"b": 2, "a": 1}, "2"))


if __name__ == "__main__":
    unittest.main()
