# SPDX-License-Identifier: Apache-2.0
"""Runs a function on the ranks of a process group, each a forked process. Passes on results and exceptions."""
import multiprocessing
import os
import tempfile
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

BACKEND = "dynamiccl"
# Far longer than any test takes on a loaded machine, so only a hang exceeds it.
_HANG_SECONDS = 240

torch.set_num_threads(1)  # a fork must not inherit a thread pool


class RankFailed(AssertionError):
    pass


def tell():
    """Lets all ranks continue that wait for this rank in await_rank()."""
    dist.distributed_c10d._get_default_store().set(f"told_by_{dist.get_rank()}", "")


def await_rank(rank):
    """Waits until that rank calls tell(), without a call on the group. run_ranks ends this rank if that rank fails."""
    dist.distributed_c10d._get_default_store().wait([f"told_by_{rank}"], timedelta(seconds=_HANG_SECONDS))


def _rank_main(function, rank, world, folder, backend, timeout, arguments, results):
    try:
        torch.set_num_threads(1)
        store = dist.FileStore(os.path.join(folder, "store"), world)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=timedelta(seconds=timeout))
        results.put((rank, function(*arguments), None))
    except BaseException:  # noqa: B902, the test gets every exception
        results.put((rank, None, traceback.format_exc()))
    results.close()
    results.join_thread()
    # Groups are not destroyed, because some tests leave them broken.
    os._exit(0)


def run_ranks(function, world, *arguments, backend=BACKEND, timeout=_HANG_SECONDS, expect_death=()):
    """Returns what `function(*arguments)` returned on each rank; None for ranks that are expected to die."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    outcomes = [None] * world
    with tempfile.TemporaryDirectory(prefix="dynamiccl_torch_") as folder:
        processes = [context.Process(target=_rank_main, args=(function, rank, world, folder, backend, timeout, arguments,
                                                              results)) for rank in range(world)]
        for process in processes:
            process.start()
        try:
            for _ in range(world - len(expect_death)):
                rank, value, failure = results.get(timeout=2 * _HANG_SECONDS)
                if failure:
                    for other in processes:
                        other.kill()
                    raise RankFailed(f"rank {rank} of {world}:\n{failure}")
                outcomes[rank] = value
        finally:
            for process in processes:
                process.join(timeout=5)
                if process.is_alive():
                    process.kill()
                    process.join()
    return outcomes
