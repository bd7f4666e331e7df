# SPDX-License-Identifier: Apache-2.0
"""Loads PyTorch's distributed_test.py so that its tests run on CPU tensors over a backend of any name.

When the file is imported, the name of the backend decides which tests exist. So the file is loaded three times, with
the names gloo, nccl and mpi. Each test comes from the first of them that does not skip it. The ranks then use the
wanted backend. Tests that ask for GPUs get CPU tensors.
"""
import functools
import importlib.util
import logging
import os
import sys

import torch
import torch.multiprocessing
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode
from torch.testing._internal import common_distributed

SELECTIONS = ("gloo", "nccl", "mpi")


class NamedBackend(str):
    """A backend's name that tests take for "gloo", because they give CPU tensors to gloo."""
    __hash__ = str.__hash__

    def __eq__(self, other):
        return other == "gloo" or str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other


def _cpu(device):
    is_gpu = isinstance(device, torch.device) and device.type == "cuda" or isinstance(device, str) and device.startswith("cuda")
    return "cpu" if is_gpu else device


class GpusAreTheCpu(TorchFunctionMode):
    """In this mode, tensors that would be made on a GPU or moved to one stay on the CPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = {name: _cpu(value) for name, value in (kwargs or {}).items()}
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = "cpu"
        if function is torch.Tensor.cuda:
            return args[0]
        if function is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:
            args = (args[0], "cpu", *args[2:])
        return function(*map(_cpu, args), **kwargs)


def _with_gpus(function):
    """Replaces PyTorch's decorators that skip a test without GPUs."""
    @functools.wraps(function)
    def test(*args, **kwargs):
        return function(*args, **kwargs)
    return test


def _take_gpus_for_the_cpu():
    """Replaces everything in this process that would refuse to run without a GPU. Ranks are forks of this process."""
    common_distributed.skip_if_no_gpu = _with_gpus
    for name in ("skip_if_lt_x_gpu", "require_n_gpus_for_nccl_backend", "requires_nccl_version", "nccl_skip_if_lt_x_gpu"):
        setattr(common_distributed, name, lambda *args, **kwargs: _with_gpus)
    common_distributed.init_multigpu_helper = lambda world, backend: {rank: [rank] for rank in range(world)}
    for name in ("set_device", "synchronize"):
        setattr(torch.cuda, name, lambda *args, **kwargs: None)
    torch.cuda.current_device = lambda: 0
    module_to, ddp_init = Module.to, DistributedDataParallel.__init__

    def to(module, *args, **kwargs):
        return module_to(module, *("cpu" if type(arg) is int else _cpu(arg) for arg in args), **kwargs)

    def init(module, *args, device_ids=None, output_device=None, **kwargs):
        ddp_init(module, *args, **kwargs)

    Module.to, DistributedDataParallel.__init__ = to, init


def _load(selection):
    """Returns the test module as PyTorch loads it for the backend of this name."""
    os.environ["BACKEND"] = selection
    path = os.path.join(os.path.dirname(torch.__file__), "testing/_internal/distributed/distributed_test.py")
    spec = importlib.util.spec_from_file_location(f"distributed_test_as_{selection}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # tests pickle the module's classes
    spec.loader.exec_module(module)
    return module


def _test_class(module):
    class Forked(module.TestDistBackend, module.DistributedTest._DistTestBase):
        """Ranks are forks, so that they need not import PyTorch again."""

        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

        def run_test(self, *args):
            with GpusAreTheCpu():
                super().run_test(*args)

    return Forked


def _name_backend(module, backend):
    module.BACKEND = NamedBackend(backend)
    for profiled in (module.PROFILING_SUPPORTED_BACKENDS, module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
        profiled.append(backend)


def test_cases(backend, world, seconds):
    """Returns a test case for each test of the file, by name. A rank that hangs is killed after `seconds`."""
    os.environ.update(WORLD_SIZE=str(world), INIT_METHOD="env://", DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(seconds))
    common_distributed.TIMEOUT_DEFAULT = seconds
    common_distributed.TIMEOUT_OVERRIDE.clear()
    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    common_distributed.DistTestCases.backend_feature["plugin"].add(backend)
    _take_gpus_for_the_cpu()
    classes = []
    for selection in SELECTIONS:
        module = _load(selection)
        _name_backend(module, backend)
        classes.append(_test_class(module))
    os.environ["BACKEND"] = backend
    cases = {}
    for name in filter(lambda name: name.startswith("test_"), dir(classes[0])):
        runs = [one for one in classes if not getattr(getattr(one, name), "__unittest_skip__", False)]
        cases[name] = (runs or classes)[0](name)
    return cases
