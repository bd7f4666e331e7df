# SPDX-License-Identifier: Apache-2.0
"""Settings of FSDP2 (torch.distributed.fsdp.fully_shard)."""
import functools
import inspect
import os

from dynamiccl_settings import steps


def apply(module, usable, report):
    """Replaces fully_shard in the module that defines it, before other modules import it from there. `usable` is a
    function that returns the settings."""
    original = module.fully_shard
    parameters = inspect.signature(original).parameters

    @functools.wraps(original)
    def fully_shard(target, *args, **kwargs):
        settings = usable()
        if "reshard_after_forward" in settings:
            _set_reshard(parameters, settings["reshard_after_forward"], report, kwargs)
        sharded = original(target, *args, **kwargs)
        if settings or report.wanted:
            _watch(sharded, module.FSDPModule, settings, report)
        return sharded

    module.fully_shard = fully_shard


def _set_reshard(parameters, value, report, kwargs):
    if "reshard_after_forward" not in parameters:
        report.left_alone("fsdp2.reshard_after_forward", value, "fully_shard of this torch has no such argument")
        return
    kwargs["reshard_after_forward"] = value
    report.applied("fsdp2.reshard_after_forward", value, value)


def _watch(sharded, fsdp_module, settings, report):
    """Sets the prefetching and writes the report when the outermost module runs forward for the first time. Only then
    are all modules wrapped. The outermost module's hook runs before the hooks of the modules inside it."""
    for module in sharded if isinstance(sharded, list) else [sharded]:
        module._dynamiccl_watched = True
        _at_first_forward(module, lambda root: _complete(root, fsdp_module, settings, report))


def _at_first_forward(module, action):
    def before_forward(current, _inputs):
        handle.remove()
        action(current)

    handle = module.register_forward_pre_hook(before_forward, prepend=True)


def _complete(root, fsdp_module, settings, report):
    if not root._dynamiccl_watched:
        return
    wrapped = list(dict.fromkeys(_in_order(root, fsdp_module, iter)))
    for module in wrapped:
        module._dynamiccl_watched = False
    seen = report.framework("fsdp2")
    seen["wrapped"] = seen.get("wrapped", 0) + len(wrapped)
    seen["parameter_bytes"] = seen.get("parameter_bytes", 0) + sum(p.numel() * p.element_size() for p in root.parameters())
    seen["free_bytes"] = _free_bytes(root)
    seen["on_host"] = all(p.device.type == "cpu" for p in root.parameters())
    backwards = list(dict.fromkeys(_in_order(root, fsdp_module, reversed)))
    for setting, order in (("forward_prefetch", wrapped), ("backward_prefetch", backwards)):
        if setting in settings:
            _prefetch(order, setting, settings[setting], report)
    if "forward_prefetch" in settings and report.wanted and len(wrapped) > 1:
        _mark_gathers_ahead(wrapped)
    report.write()


def _in_order(module, fsdp_module, direction):
    """Yields the wrapped modules in the order in which they run: `direction` is `iter` for forward, `reversed` for
    backward."""
    if isinstance(module, fsdp_module):
        yield module
    for child in direction(list(module.children())):
        yield from _in_order(child, fsdp_module, direction)


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
