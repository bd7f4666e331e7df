# SPDX-License-Identifier: Apache-2.0
"""Settings of FSDP2 (torch.distributed.fsdp.fully_shard)."""
import functools
import inspect
import os
import sys

from dynamiccl_settings import steps
from dynamiccl_settings.fsdp2_units import Hybrid, Units, is_of_all_ranks
from dynamiccl_settings.report import quietly

# The number of optimizer steps in which forward passes are counted.
_COUNTED_STEPS = 4
# These packages take fully_shard from the module that defines it. If they were imported before the hook was installed,
# they still have the original.
_PACKAGES = ("torch.distributed.fsdp", "torch.distributed.fsdp._fully_shard", "torch.distributed._composable.fsdp")


def apply(module, usable, report):
    """Replaces fully_shard in the module that defines it, before other modules import it from there. `usable` is a
    function that returns the settings."""
    original = module.fully_shard
    wrapper = None
    # The module of the older name takes its function from the newer one, where it is wrapped already.
    if hasattr(original, "of_dynamiccl"):
        return

    @functools.wraps(original)
    def fully_shard(*args, **kwargs):
        nonlocal wrapper
        settings = usable()
        # The program may name its module: fully_shard(module=model). Wrong arguments are left to the original.
        targets = [*args, *(value for name, value in kwargs.items() if name == "module")]
        if len(targets) != 1 or not (settings or report.wanted):
            return original(*args, **kwargs)
        wrapper = wrapper or _Wrapper(original, module.FSDPModule, settings, report)
        return wrapper.shard(targets[0], {name: value for name, value in kwargs.items() if name != "module"})

    fully_shard.of_dynamiccl = True
    for package in (module, *(sys.modules[name] for name in _PACKAGES if name in sys.modules)):
        if getattr(package, "fully_shard", None) is original:
            package.fully_shard = fully_shard


class _Wrapper:
    """Calls fully_shard with the settings in place of the program's arguments, and reports what then happens."""

    def __init__(self, original, fsdp_module, settings, report):
        self._original = original
        self._fsdp_module = fsdp_module
        self._settings = settings
        self._report = report
        self._hybrid = Hybrid(settings["shard_ranks"], report) if "shard_ranks" in settings else None
        self._takes_lists = _takes_lists(original)
        self._units = Units(self._modules_per_unit(), self._shard_unit)
        self._one_mesh = True

    def shard(self, target, arguments):
        """What the program's call of fully_shard does and returns."""
        if "reshard_after_forward" in self._settings:
            _set_reshard(self._original, self._settings["reshard_after_forward"], self._report, arguments)
        self._one_mesh = self._one_mesh and bool(quietly("the report of FSDP2", is_of_all_ranks, arguments))
        if self._hybrid is not None:
            self._hybrid.replace(arguments)
        return self._units.add(target, arguments)

    def _modules_per_unit(self):
        asked = self._settings.get("modules_per_unit", 1)
        if asked > 1 and not self._takes_lists:
            self._report.left_alone("fsdp2.modules_per_unit", asked, "fully_shard of this torch takes no list of modules")
            return 1
        return asked

    def _shard_unit(self, target, arguments):
        """Shards one unit. The prefetching is set and the report is written when the outermost module runs forward for
        the first time. Only then are all modules wrapped. The outermost module's hook runs before the hooks of the
        modules inside it."""
        sharded = self._original(target, **arguments)
        for module in sharded if isinstance(sharded, list) else [sharded]:
            module._dynamiccl_watched = True
            _at_first_forward(module, lambda root: quietly("the hook of FSDP2", self._complete, root))
        return sharded

    def _complete(self, root):
        if not root._dynamiccl_watched:
            return
        for module in _in_order(root, self._fsdp_module, iter):
            module._dynamiccl_watched = False
        wrapped = _units_of(_in_order(root, self._fsdp_module, iter))
        quietly("the report of FSDP2", self._observe, root, wrapped)
        backwards = _units_of(_in_order(root, self._fsdp_module, reversed))
        for setting, order in (("forward_prefetch", wrapped), ("backward_prefetch", backwards)):
            if setting in self._settings:
                _prefetch(order, setting, self._settings[setting], self._report)
        if "forward_prefetch" in self._settings and self._report.wanted and len(wrapped) > 1:
            _mark_gathers_ahead(wrapped)
        self._report.write()

    def _observe(self, root, wrapped):
        seen = self._report.framework("fsdp2")
        seen["wrapped"] = seen.get("wrapped", 0) + len(wrapped)
        seen["parameter_bytes"] = seen.get("parameter_bytes", 0) + sum(
            p.numel() * p.element_size() for p in root.parameters())
        seen["free_bytes"] = _free_bytes(root)
        seen["on_host"] = all(p.device.type == "cpu" for p in root.parameters()) and not _gathers_async(wrapped)
        seen["takes_lists"], seen["one_mesh"] = self._takes_lists, self._one_mesh
        if "passes" not in seen:
            seen["passes"] = 1
            _count_passes(root, seen, self._report)
        for direction in ("forward", "backward"):
            seen[direction + "_prefetch"] = _own_depth(wrapped, direction)
        seen["longest_row"], seen["largest_unit"] = self._units.longest_row, self._units.largest
        if "modules_per_unit" in self._settings and self._takes_lists:
            self._report.applied("fsdp2.modules_per_unit", self._settings["modules_per_unit"], self._units.largest)


def _count_passes(root, seen, report):
    """Notes how often the outermost module runs forward between two steps of an optimizer. The smallest of the counts
    is that of training, because a step with an evaluation has more. Forward passes that activation checkpointing
    repeats during the backward pass do not count."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    counts = [1]

    def before_forward():
        if torch._C._current_graph_task_id() == -1:
            counts[-1] += 1

    def after_step():
        if counts[-1] > 0:
            counts.append(0)
        if len(counts) > _COUNTED_STEPS:
            forward.remove()
            step.remove()
            seen["passes"] = min(counts[:-1])
            report.write()

    forward = root.register_forward_pre_hook(lambda *_: quietly("the report of FSDP2", before_forward))
    step = register_optimizer_step_post_hook(lambda *_: quietly("the report of FSDP2", after_step))


def _takes_lists(fully_shard):
    """True from torch 2.5 on, whose description of fully_shard names lists of modules."""
    return "list[nn.module]" in (fully_shard.__doc__ or "").lower()


def _set_reshard(fully_shard, value, report, arguments):
    if "reshard_after_forward" not in inspect.signature(fully_shard).parameters:
        report.left_alone("fsdp2.reshard_after_forward", value, "fully_shard of this torch has no such argument")
        return
    arguments["reshard_after_forward"] = value
    report.applied("fsdp2.reshard_after_forward", value, value)


def _at_first_forward(module, action):
    def before_forward(current, _inputs):
        handle.remove()
        action(current)

    handle = module.register_forward_pre_hook(before_forward, prepend=True)


def _in_order(module, fsdp_module, direction):
    """Yields the wrapped modules in the order in which they run: `direction` is `iter` for forward, `reversed` for
    backward."""
    if isinstance(module, fsdp_module):
        yield module
    for child in direction(list(module.children())):
        yield from _in_order(child, fsdp_module, direction)


def _units_of(modules):
    """Returns the first of the modules of each unit. The modules of a unit share one state."""
    return list({id(module._get_fsdp_state()): module for module in reversed(list(modules))}.values())[::-1]


def _own_depth(wrapped, direction):
    """Returns how many units the program itself lets a unit prefetch, at most; 0: it leaves this to PyTorch."""
    lists = [getattr(module._get_fsdp_state(), f"_states_to_{direction}_prefetch", ()) for module in wrapped]
    return max((len(one) for one in lists), default=0)


def _gathers_async(wrapped):
    """True if the program lets a unit issue its gathers without waiting for them (_set_unshard_async_op)."""
    for state in (module._get_fsdp_state() for module in wrapped):
        groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
        if any(getattr(group, "unshard_async_op", False) for group in groups):
            return True
    return False


def _prefetch(order, setting, depth, report):
    """Makes each wrapped module gather the parameters of the `depth` modules that run after it."""
    method = f"set_modules_to_{setting}"
    if not all(hasattr(module, method) for module in order):
        report.left_alone("fsdp2." + setting, depth, f"FSDPModule of this torch has no {method}")
        return
    for number, module in enumerate(order):
        getattr(module, method)(order[number + 1:number + 1 + depth])
    report.applied("fsdp2." + setting, depth, depth)


def _mark_gathers_ahead(wrapped):
    """Marks the calls from the outermost module's forward pass until the second wrapped module begins to compute. The
    number of gathers among them shows how far ahead modules gather. The first hook runs before FSDP's own, the second
    after it."""
    wrapped[0].register_forward_pre_hook(lambda _module, _inputs: steps.mark_forward(True), prepend=True)
    wrapped[1].register_forward_pre_hook(lambda _module, _inputs: steps.mark_forward(False))


def _free_bytes(root):
    """Returns the free bytes of this rank's device. If the parameters are in host memory, returns this rank's share of
    the memory that is available on the host."""
    import torch

    if any(p.device.type == "cuda" for p in root.parameters()):
        return torch.cuda.mem_get_info()[0]
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next((int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")), 0)
    return available // int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
