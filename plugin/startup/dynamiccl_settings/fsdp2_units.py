# SPDX-License-Identifier: Apache-2.0
"""Two settings that change what fully_shard is called with: several modules in one unit, and a mesh of hybrid sharding.

A unit is what FSDP2 gathers and reduces in one call: the parameters of one module, or those of a list of modules. Modules
cannot be put into another unit after fully_shard. So a module of a longer unit is sharded only when the last module of
its unit has come. It is sharded earlier if the program shards a module that has another class or other arguments, or
that contains it.
"""
import weakref

from dynamiccl_settings.report import quietly

_ALONE = "the module was to share a unit, but no module around it was wrapped before its first forward pass: wrap the " \
         "outermost module last, or remove modules_per_unit from the settings"


class Units:
    """Collects modules that follow one another in the program's calls of fully_shard, have one class, and are sharded with
    the same arguments. `shard` is called with a list of modules, or with one module, and its arguments."""

    def __init__(self, size, shard):
        self._size = size
        self._shard = shard
        self._waiting, self._arguments, self._handles = [], {}, []
        # The module of the last call, which this object does not keep alive, the arguments, and the length of its row.
        self._last, self._row_arguments, self._row = _no_module, {}, 0
        # The most modules in a row that could share a unit, and the most that share one.
        self.longest_row, self.largest = 1, 1

    def add(self, module, arguments):
        """Shards the module, or keeps it until its unit is complete. Returns what the program's call returns."""
        quietly("the report of FSDP2", self._note_row, module, arguments)
        if not self._continues(module, arguments):
            self.flush()
        if self._size == 1 or isinstance(module, list) or _wraps_something(module):
            return self._shard(module, arguments)
        self._waiting.append(module)
        self._arguments = arguments
        self._handles.append(module.register_forward_pre_hook(_refuse, prepend=True))
        if len(self._waiting) == self._size:
            self.flush()
        return module

    def flush(self):
        """Shards the modules that wait, as one unit."""
        for handle in self._handles:
            handle.remove()
        waiting, self._waiting, self._handles = self._waiting, [], []
        if not waiting:
            return
        self.largest = max(self.largest, len(waiting))
        self._shard(waiting if len(waiting) > 1 else waiting[0], self._arguments)

    def _continues(self, module, arguments):
        return bool(self._waiting) and _alike(self._waiting[-1], module) and self._arguments == arguments

    def _note_row(self, module, arguments):
        last = self._last()
        continues = last is not None and _alike(last, module) and self._row_arguments == arguments
        self._row = self._row + 1 if continues else 1
        self._row_arguments = arguments
        self._last = _no_module if isinstance(module, list) else weakref.ref(module)
        self.longest_row = max(self.longest_row, self._row)


def _no_module():
    return None


def _alike(one, other):
    """True if both are single modules of one class, and none is part of the other. fully_shard changes a module's class to
    one that is derived from it."""
    if isinstance(one, list) or isinstance(other, list) or any(part is one for part in other.modules()):
        return False
    return isinstance(one, type(other))


def _wraps_something(module):
    """True if a module inside this one was sharded before: then this one is the model, or a part that encloses units."""
    return any(hasattr(part, "_dynamiccl_watched") for part in module.modules() if part is not module)


def _refuse(_module, _inputs):
    raise RuntimeError("dynamiccl: " + _ALONE)


def is_of_all_ranks(arguments):
    """True if the arguments of fully_shard divide states over all ranks, in one dimension."""
    import torch.distributed as dist

    mesh = arguments.get("mesh")
    if arguments.get("dp_mesh_dims") is not None:
        return False
    return mesh is None or mesh.ndim == 1 and dist.is_initialized() and mesh.size() == dist.get_world_size()


class Hybrid:
    """Replaces the mesh of fully_shard by one in which states are divided over groups of `ranks` neighbouring ranks and
    copied between the groups."""

    def __init__(self, ranks, report):
        self._ranks = ranks
        self._report = report
        self._mesh = None

    def replace(self, arguments):
        reason = self._why_not(arguments)
        if reason:
            self._report.left_alone("fsdp2.shard_ranks", self._ranks, reason)
            return
        if self._mesh is None:
            self._mesh = quietly("the mesh of fsdp2.shard_ranks", self._make, arguments.get("mesh"))
            if self._mesh is None:
                self._report.left_alone("fsdp2.shard_ranks", self._ranks, "its mesh could not be made")
                return
            self._report.applied("fsdp2.shard_ranks", self._ranks, self._ranks)
        arguments["mesh"] = self._mesh

    def _why_not(self, arguments):
        import torch.distributed as dist

        if not dist.is_initialized():
            return "no process group exists yet"
        world = dist.get_world_size()
        if not 1 < self._ranks < world or world % self._ranks:
            return f"{world} ranks cannot be divided into groups of {self._ranks}"
        return "" if is_of_all_ranks(arguments) else "the program's mesh is not one of all ranks in one dimension"

    def _make(self, given):
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh

        device = given.device_type if given is not None else torch._C._get_accelerator().type
        shape = (dist.get_world_size() // self._ranks, self._ranks)
        return init_device_mesh(device, shape, mesh_dim_names=("dp_replicate", "dp_shard"))
