# SPDX-License-Identifier: Apache-2.0
"""Registers the backend "dynamiccl" with torch.distributed. It imports nothing of torch before register() is called."""
import pathlib

NAME = "dynamiccl"


def register():
    """Registers the backend and may be called again. The library is loaded when the first process group is made."""
    import torch.distributed as dist

    if dist.is_available() and NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def _create(options, _backend_options):
    return _load().create(store=options.store, rank=options.group_rank, size=options.group_size,
                          timeout=options.timeout, group_name=options.group_id,
                          global_ranks=options.global_ranks_in_group)


def _hint():
    if any(pathlib.Path(__file__).parent.glob("_backend*")):
        return ("it is built for one release of Python and PyTorch, and needs hostccl's libnccl.so.2; build it again with "
                "the Python that runs this")
    return "it was not built yet: tools/setup/build.sh programs dynamiccl_torch"


def _load():
    try:
        from dynamiccl_torch import _backend
    except ImportError as error:
        raise RuntimeError(
            f'the backend "{NAME}" could not be loaded: {error}\n  hint: {_hint()}') from error
    return _backend
