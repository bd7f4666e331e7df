# SPDX-License-Identifier: Apache-2.0
"""Runs a function as the ranks of a process group, each in a forked process, and passes on what it returns or raises."""
import multiprocessing
import os
import tempfile
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

BACKEND = "dynamiccl"
# Far above what a loaded machine takes: a hang is reported, a slow machine is not.
_HANG_SECONDS = 240

torch.set_num_threads(1)  # no thread pool before the fork


class RankFailed(AssertionError):
    pass


def tell():
    """Lets every rank go on that stands in await_rank() for this one."""
    dist.distributed_c10d._get_default_store().set(f"told_by_{dist.get_rank()}", "")


def await_rank(rank):
    """Returns when that rank tells, without a call on the group. run_ranks ends this rank where the other one fails."""
    dist.distributed_c10d._get_default_store().wait([f"told_by_{rank}"], timedelta(seconds=_HANG_SECONDS))


def _rank_main(function, rank, world, folder, backend, timeout, arguments, results):
    try:
        torch.set_num_threads(1)
        store = dist.FileStore(os.path.join(folder, "store"), world)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=timedelta(seconds=timeout))
        results.put((rank, function(*arguments), None))
    except BaseException:  # noqa: B902, whatever it was goes to the test
        results.put((rank, None, traceback.format_exc()))
    results.close()
    results.join_thread()
    # Groups are left as they are: some tests leave them broken.
    os._exit(0)


def run_ranks(function, world, *arguments, backend=BACKEND, timeout=_HANG_SECONDS, expect_death=()):
    """What `function(*arguments)` returned on each rank; None of those that are expected to die."""
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
