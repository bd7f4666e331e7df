# SPDX-License-Identifier: Apache-2.0
"""Tests ranks that die, skip a collective, abort or stay away.

Every rank must end, and `dynamiccl hang` must name the rank and the call."""
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import await_rank, run_ranks, tell

DYNAMICCL = os.environ["DYNAMICCL_PROGRAM"]
RANKS = 3
# The group's time-out in the jobs below.
TIMEOUT_MS = 4000

# DDP with four buckets of one size. The fault happens on rank 1 in the middle of step 5, when the first bucket is in
# flight and the other ranks have issued the second one. A rank that noticed the fault earlier would not issue the
# second bucket, so it would be behind too.
JOB = """
import os, sys, torch, torch.distributed as dist
from datetime import timedelta
from torch import nn
rank, world, folder, fault = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.set_num_threads(1)
store = dist.FileStore(folder + "/store", world)
dist.init_process_group("dynamiccl", store=store, rank=rank, world_size=world,
                        timeout=timedelta(milliseconds={timeout_ms}))
torch.manual_seed(0)
net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.1)
step = 0

def hook(_, bucket):
    here = step == 5 and bucket.index() == 1
    if here and rank == 1:
        store.wait([f"issued_{{other}}" for other in range(world) if other != rank])
        if fault == "kill":
            os.kill(os.getpid(), 9)
        if fault == "abort":
            dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        if fault == "skip":
            done = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    if here:
        store.set(f"issued_{{rank}}", "")
    return work.get_future().then(lambda future: future.value()[0] / world)

model.register_comm_hook(None, hook)
try:
    for step in range(8):
        model(torch.ones(4, 256)).sum().backward()
    store.wait([f"ended_{{other}}" for other in range(world) if other != rank])
except RuntimeError as error:
    print(error, flush=True)
    store.set(f"ended_{{rank}}", "")
    os._exit(7)
"""


def run_job(folder, fault):
    """Returns the exit code and output of each rank, and what `dynamiccl hang` finds in their traces."""
    os.mkdir(folder + "/traces")
    preload = subprocess.run([DYNAMICCL, "path", "--preload"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {**os.environ, "LD_PRELOAD": preload, "DYNAMICCL_TRACE": folder + "/traces/%r.ctrace"}
    script = JOB.format(timeout_ms=TIMEOUT_MS)
    ranks = [subprocess.Popen([sys.executable, "-c", script, str(rank), str(RANKS), folder, fault], text=True, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(RANKS)]
    ended = [(rank.communicate(timeout=300), rank.returncode) for rank in ranks]
    hang = subprocess.run([DYNAMICCL, "hang", "--json", folder + "/traces"], capture_output=True, text=True)
    return [(code, output + errors) for (output, errors), code in ended], json.loads(hang.stdout)["findings"]


def a_rank_stays_away_from_a_new_group(away):
    """The other ranks notice it after the time-out of the new group, not that of the default group."""
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == away:
        store.wait([f"tried_{rank}" for rank in range(dist.get_world_size()) if rank != away])
        return
    begin = time.monotonic()
    try:
        dist.new_group(timeout=timedelta(seconds=1))
    except dist.DistBackendError as error:
        for words in ("group", "Timed out after 1000 ms", f"rank {away}"):
            assert words in str(error), f"'{words}' is not in: {error}"
    else:
        raise AssertionError("the group was made without a rank")
    assert time.monotonic() - begin >= 0.9, "before the time-out"
    store.set(f"tried_{dist.get_rank()}", "")


def a_waiting_message_blocks_no_new_group():
    """While a thread waits in the store for the other rank of a message, the program can still use the store."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) if rank == 0 else None
    if rank == 0:
        store.set("port", str(server.port))
    shared = server or dist.TCPStore("127.0.0.1", int(store.get("port")), is_master=False)
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("dynamiccl", store=shared, rank=rank, world_size=2, timeout=timedelta(seconds=20))
    message = torch.zeros(1)
    early = dist.irecv(message, 0) if rank == 1 else None
    time.sleep(0.5)  # by now the message's thread waits in the store
    dist.new_group()
    if rank == 0:
        dist.send(torch.ones(1), 1)
    else:
        early.wait()
        assert message.item() == 1
    dist.barrier()


def a_store_serves_a_second_group():
    """The second group must not use what the first group left in the store."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    for _ in range(3):
        dist.barrier()
        dist.destroy_process_group()
        if rank == 0:
            time.sleep(1)  # meanwhile the other rank looks for the id
        dist.init_process_group("dynamiccl", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=20))
        dist.barrier()


def an_abort_ends_messages_that_wait_for_their_peer():
    """The peer issues no message, so the two ranks never connect."""
    if dist.get_rank() == 1:
        await_rank(0)
        return
    expect = unittest.TestCase().assertRaisesRegex
    messages = [dist.irecv(torch.ones(10), 1), dist.isend(torch.ones(10), 1)]
    threading.Timer(0.2, dist.group.WORLD._get_backend(torch.device("cpu")).abort).start()
    for message in messages:
        with expect(dist.DistBackendError, "the program aborted it"):
            message.wait()
    with expect(dist.DistBackendError, "cannot be used any more: the program aborted it"):
        dist.send(torch.ones(10), 1)
    tell()


def a_forked_child_destroys_the_group():
    """The child inherits conditions on which the group's threads wait, but not these threads."""
    dist.all_reduce(torch.ones(2_000_000), async_op=True).wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that hangs
        dist.destroy_process_group()
        gc.collect()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status}"
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    assert tensor.eq(2).all()


class LostRanks(unittest.TestCase):
    def run_with(self, fault):
        with tempfile.TemporaryDirectory(prefix="dynamiccl_torch_") as folder:
            return run_job(folder, fault)

    def assert_failed(self, ended, *words):
        code, output = ended
        self.assertEqual(code, 7, output)
        for word in words:
            self.assertIn(word, output)

    def assert_named(self, findings):
        self.assertEqual(findings[0]["kind"], "behind", findings)
        self.assertEqual(findings[0]["ranks"], [1], findings)
        self.assertIn("AllReduce", "\n".join(findings[0]["text"]))

    def test_a_rank_is_killed_in_a_step(self):
        ended, findings = self.run_with("kill")
        self.assertEqual(ended[1][0], -9)
        for rank in (0, 2):
            self.assert_failed(ended[rank], "all_reduce number", f"on rank {rank}")
        self.assert_named(findings)

    def test_a_rank_aborts_in_a_step(self):
        ended, findings = self.run_with("abort")
        self.assert_failed(ended[1], "the program aborted it")
        for rank in (0, 2):
            self.assert_failed(ended[rank], "all_reduce number", f"on rank {rank}")
        self.assert_named(findings)

    def test_a_rank_skips_a_collective(self):
        """All later calls have the same size, so the skip shows only at the last call of ranks 0 and 2: rank 1 has no
        call left for it.

        One of these two ranks times out first, and its process ends. The other rank then also times out, or notices
        before that the process has ended."""
        ended, findings = self.run_with("skip")
        self.assertEqual(ended[1][0], 0, ended[1][1])
        timed_out = [rank for rank in (0, 2) if f"on rank {rank}: Timed out after {TIMEOUT_MS} ms" in ended[rank][1]]
        self.assertTrue(timed_out, ended)
        for rank in (0, 2):
            self.assert_failed(ended[rank], "all_reduce number", f"on rank {rank}: ")
            if rank not in timed_out:
                self.assertIn(f"rank {timed_out[0]} ended or closed the communicator", ended[rank][1])
        self.assert_named(findings)


class Groups(unittest.TestCase):
    def test_a_rank_stays_away_from_a_new_group(self):
        for away in (0, 1):
            with self.subTest(away=away):
                run_ranks(a_rank_stays_away_from_a_new_group, 3, away, timeout=20)

    def test_a_waiting_message_blocks_no_new_group(self):
        run_ranks(a_waiting_message_blocks_no_new_group, 2, timeout=20)

    def test_a_store_serves_a_second_group(self):
        run_ranks(a_store_serves_a_second_group, 2, timeout=20)

    def test_an_abort_ends_messages_that_wait_for_their_peer(self):
        run_ranks(an_abort_ends_messages_that_wait_for_their_peer, 2, timeout=20)

    def test_a_forked_child_destroys_the_group(self):
        run_ranks(a_forked_child_destroys_the_group, 2, timeout=20)


if __name__ == "__main__":
    unittest.main()
