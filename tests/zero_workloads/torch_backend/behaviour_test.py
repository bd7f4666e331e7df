# SPDX-License-Identifier: Apache-2.0
"""Tests order, groups, point-to-point messages, coalescing, wrong input, time-outs and lost ranks."""
import gc
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import await_rank, run_ranks, tell
from serial_reference import tensor_of
from torch.distributed import ReduceOp
from torch.distributed.distributed_c10d import _coalescing_manager


def me():
    return dist.get_rank(), dist.get_world_size()


def raises(kind, words, function, *arguments, **named):
    """Requires that `function` raises `kind` with a message that contains all `words`."""
    try:
        result = function(*arguments, **named)
        if isinstance(result, dist.Work):
            result.wait()
    except kind as error:
        for word in words:
            assert word in str(error), f"'{word}' is not in: {error}"
        return
    raise AssertionError(f"{getattr(function, '__name__', function)} did not raise {kind.__name__}")


# ---- order and futures ----

def calls_of_a_group_run_in_order():
    """Without waits between calls, each call must read what the call before wrote."""
    rank, world = me()
    tensor = torch.full((200_000,), float(rank + 1))
    works = [dist.all_reduce(tensor, async_op=True)]
    for _ in range(3):
        works.append(dist.broadcast(tensor, world - 1, async_op=True))
        works.append(dist.all_reduce(tensor, async_op=True))
    works[-1].wait()
    assert all(work.is_completed() for work in works), "an earlier call was not done"
    assert tensor.eq(world * (world + 1) / 2 * world**3).all(), tensor[0]


def tensors_live_until_the_call_is_done():
    rank, world = me()
    works = [dist.all_reduce(torch.full((100_000,), 1.0), async_op=True) for _ in range(20)]
    junk = [torch.randn(100_000) for _ in range(20)]
    for work in works:
        work.wait()
        assert work.result()[0].eq(world).all()
    assert len(junk) == 20


class Memory(bytearray):
    """A tensor's memory that a weak reference can watch. PyTorch releases it after the tensor's last use."""


def watched_tensor(elements):
    memory = Memory(4 * elements)
    return torch.frombuffer(memory, dtype=torch.float32), weakref.ref(memory)


def finished_calls_keep_nothing():
    """A pending receive must not keep the tensors of the thousands of calls that are issued after it."""
    rank, _ = me()
    message = torch.zeros(1)
    early = dist.irecv(message, 1) if rank == 0 else None
    memories = []
    for _ in range(40):
        works = []
        for _ in range(50):
            tensor, memory = watched_tensor(20_000)
            memories.append(memory)
            works.append(dist.all_reduce(tensor, async_op=True))
        for work in works:
            work.wait()
    del tensor, work, works
    gc.collect()
    alive = sum(memory() is not None for memory in memories)
    assert alive == 0, f"{alive} of {len(memories)} tensors are kept"
    if rank == 1:
        dist.send(torch.ones(1), 0)
    else:
        early.wait()
        assert message.item() == 1


def futures_carry_results_and_callbacks():
    rank, world = me()
    seen = []
    tensor = torch.full((100_000,), float(rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    after = future.then(lambda done: seen.append(threading.get_ident()) or done.value()[0] * 2)
    assert after.wait().eq(world * (world - 1)).all() and seen
    late = dist.barrier(async_op=True)
    late.wait()
    assert late.get_future().done()


# ---- groups ----

def groups_of_every_kind():
    rank, world = me()
    even, odd = dist.new_group([0, 2]), dist.new_group([1, 3])
    mine = even if rank % 2 == 0 else odd
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=mine)
    assert tensor.item() == (2 if rank % 2 == 0 else 4)
    received = [torch.zeros(1) for _ in range(2)]
    dist.all_gather(received, torch.tensor([float(rank)]), group=mine)
    assert [t.item() for t in received] == ([0, 2] if rank % 2 == 0 else [1, 3])
    dist.broadcast(tensor, 2 if rank % 2 == 0 else 3, group=mine)  # the root is a global rank
    alone = [dist.new_group([r]) for r in range(world)][rank]
    dist.all_reduce(tensor, group=alone)
    dist.destroy_process_group(mine)
    dist.barrier()


def a_group_is_split_by_nccl():
    rank, world = me()
    parent = dist.group.WORLD
    part = parent.split_group([0, 1] if rank < 2 else [2, 3], group_name=f"part_{rank // 2}")
    tensor = torch.full((5,), float(rank))
    part.allreduce([tensor]).wait()
    assert tensor[0].item() == (1 if rank < 2 else 5)
    one = parent.split_group([3], group_name="one")
    assert (one is None) == (rank != 3)


def two_groups_in_opposite_order():
    """Each group has its own communicator, so ranks may use groups in different orders."""
    rank, _ = me()
    first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
    tensors = [torch.full((500_000,), 1.0), torch.full((500_000,), 2.0)]
    order = [(tensors[0], first), (tensors[1], second)]
    works = [dist.all_reduce(tensor, group=group, async_op=True)
             for tensor, group in (order if rank == 0 else reversed(order))]
    for work in works:
        work.wait()
    assert tensors[0].eq(2).all() and tensors[1].eq(4).all()


def objects_travel():
    rank, world = me()
    gathered = [None] * world
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank * 1000})
    assert [one["rank"] for one in gathered] == list(range(world))
    sent = [{"from": 1}, [1, 2]] if rank == 1 else [None, None]
    dist.broadcast_object_list(sent, src=1)
    assert sent == [{"from": 1}, [1, 2]]
    part = [None]
    dist.scatter_object_list(part, list(range(world)) if rank == 0 else None, src=0)
    assert part == [rank]


# ---- coalescing and point to point ----

def coalesced_calls_are_one_work():
    rank, world = me()
    tensors = [tensor_of((n,), torch.float32, n, rank) for n in (3, 1000, 50_000)]
    expected = [sum(tensor_of((n,), torch.float32, n, r) for r in range(world)) for n in (3, 1000, 50_000)]
    with _coalescing_manager(async_ops=True) as block:
        for tensor in tensors:
            dist.all_reduce(tensor)
    block.wait()
    assert all(torch.equal(a, b) for a, b in zip(tensors, expected))
    outputs = [torch.zeros(world * n) for n in (4, 300)]
    with _coalescing_manager():
        for output in outputs:
            dist.all_gather_single(output, torch.full((output.numel() // world,), float(rank)))
    assert all(output.view(world, -1)[r].eq(r).all() for output in outputs for r in range(world))
    parts = [torch.zeros(n) for n in (4, 300)]
    with _coalescing_manager():
        for part in parts:
            dist.reduce_scatter_single(part, torch.ones(part.numel() * world))
    assert all(part.eq(world).all() for part in parts)


def coalesced_by_device():
    """The old form of coalescing: the backend gets each call between its start and end."""
    rank, world = me()
    one, two = torch.ones(10), torch.full((2000,), float(rank))
    with _coalescing_manager(device=torch.device("cpu"), async_ops=True) as block:
        dist.all_reduce(one)
        dist.broadcast(two, 1)
    block.wait()
    assert one.eq(world).all() and two.eq(1).all()


def messages_in_a_ring():
    rank, world = me()
    right, left = (rank + 1) % world, (rank - 1) % world
    for elements in (0, 1, 5000, 700_000):
        sent, received = torch.full((elements,), float(rank)), torch.zeros(elements)
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, right), dist.P2POp(dist.irecv, received, left)])
        for work in works:
            work.wait()
        assert received.eq(left).all()


def messages_beside_collectives():
    """A message that has not been received yet must not delay collectives."""
    rank, _ = me()
    message = torch.full((600_000,), 7.0) if rank == 0 else torch.zeros(600_000)
    pending = dist.isend(message, 1) if rank == 0 else None
    total = torch.ones(1)
    dist.all_reduce(total)
    if rank == 1:
        dist.recv(message, 0)
    if pending:
        pending.wait()
    assert message.eq(7).all() and total.item() == dist.get_world_size()
    if rank < 2:
        for _ in range(50):
            if rank == 0:
                dist.send(torch.tensor([1.0]), 1)
            else:
                dist.recv(message[:1], 0)


def threads_of_this_process():
    return len(os.listdir("/proc/self/task"))


def a_message_outlives_its_group():
    """The message's thread has the last reference to the communicator of the two ranks. It must release it."""
    rank, _ = me()
    dist.barrier()
    group = dist.new_group()
    if rank == 0:
        tensor, memory = watched_tensor(600_000)
        tensor.fill_(7)
        dist.isend(tensor, 1, group=group)
        dist.destroy_process_group(group)
        del tensor, group
        gc.collect()
        threads = threads_of_this_process()  # the message's communicator does not exist yet
    dist.barrier()  # only now does the other rank receive
    if rank == 1:
        received = torch.zeros(600_000)
        dist.recv(received, 0, group=group)
        assert received.eq(7).all()
    else:
        while memory() is not None or threads_of_this_process() > threads:  # run_ranks reports a hang
            time.sleep(0.01)
    dist.barrier()


def groups_leave_the_environment_alone():
    """A group's time-out must not be set in the environment, where later groups and children would read it."""
    before = dict(os.environ)
    for seconds in (5, 1800, 7):
        dist.all_reduce(torch.ones(1), group=dist.new_group(timeout=timedelta(seconds=seconds)))
    assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
    assert "HOSTCCL_TIMEOUT_MS" not in os.environ


# ---- wrong input ----

def wrong_input_is_refused():
    rank, world = me()
    four = torch.zeros(4)
    raises(ValueError, ["all_reduce", "not dense", "contiguous()"], dist.all_reduce, torch.zeros(4, 4)[:, :2])
    raises(ValueError, ["all_reduce", "bitwise"], dist.all_reduce, torch.zeros(4, dtype=torch.int32), ReduceOp.BAND)
    raises(ValueError, ["all_reduce", "compute", "int16"], dist.all_reduce, torch.zeros(4, dtype=torch.int16))
    raises(ValueError, ["bool", "SUM, MAX"], dist.all_reduce, torch.zeros(4, dtype=torch.bool), ReduceOp.AVG)
    raises(ValueError, ["floating point"], dist.all_reduce, torch.zeros(4).int(), dist._make_nccl_premul_sum(0.5))
    raises(ValueError, ["all_gather_single", "7 elements", f"each of {world}"], dist.all_gather_single,
           torch.zeros(7), four)
    raises((TypeError, ValueError), ["type"], dist.reduce_scatter_single, four,
           torch.zeros(4 * world, dtype=torch.float64))
    raises(ValueError, ["reduce_scatter_single", "not contiguous"], dist.reduce_scatter_single, four,
           torch.zeros(4, world).t())
    raises(ValueError, [], dist.all_gather, [four], four)
    gather = dist.all_gather_coalesced
    raises(ValueError, ["all_gather_coalesced", "1 lists", f"{world} ranks"], gather, [[four]], [four])
    raises(ValueError, ["all_gather_coalesced", "5 elements"], gather, [[four]] * world, [torch.zeros(5)])
    raises(ValueError, ["all_to_all_single", "splits"], dist.all_to_all_single, torch.zeros(4), torch.zeros(4),
           [4] + [0] * (world - 1), [1] * world + [0])
    raises(ValueError, ["tag 3", "order"], dist.isend, four, (rank + 1) % world, tag=3)
    raises((ValueError, RuntimeError), ["sparse"], dist.all_reduce, torch.zeros(4, 4).to_sparse())
    dist.all_reduce(four.fill_(1))  # the group still works
    assert four.eq(world).all()


def torchs_own_check_finds_unequal_calls():
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, PyTorch compares the ranks' calls before the backend gets them."""
    rank, _ = me()
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    tensor = torch.ones(1000)
    dist.all_reduce(tensor, group=group)
    assert tensor.eq(2).all()
    raises(RuntimeError, ["mismatch", "ALLREDUCE"], dist.all_reduce, torch.ones(10 + rank), group=group)


# ---- time-outs, aborts, lost ranks ----

def a_late_rank_is_named_by_the_call():
    rank, _ = me()
    if rank == 1:
        await_rank(0)
        return
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    raises(dist.DistBackendError, ["all_reduce number", "float32 x 1000", "rank 0", "Timed out", "1000 ms", "another rank"], work.wait)
    assert time.monotonic() - begin >= 0.9, "before the time-out"
    raises(dist.DistBackendError, ["cannot be used any more", "all_reduce"], dist.all_reduce, torch.ones(1))
    tell()


def all_works_in_flight_end_with_the_time_out():
    """The stream's thread asks why the first work failed, while the abort waits for the other works."""
    rank, _ = me()
    if rank == 1:
        await_rank(0)
        return
    works = [dist.all_reduce(torch.ones(200_000), async_op=True) for _ in range(4)]
    for work in works:
        raises(dist.DistBackendError, ["1000 ms, the group's timeout"], work.wait)
    tell()


def a_future_ends_with_the_time_out():
    rank, _ = me()
    if rank == 1:
        await_rank(0)
        return
    future = dist.all_gather_single(torch.zeros(2_000_000), torch.ones(1_000_000), async_op=True).get_future()
    raises(RuntimeError, ["all_gather_single", "1000 ms"], future.wait)
    tell()


def a_wait_with_a_time_of_its_own():
    rank, _ = me()
    tensor = torch.ones(1000)
    if rank == 1:
        await_rank(0)
    work = dist.all_reduce(tensor, async_op=True)
    if rank == 0:
        raises(dist.DistBackendError, ["Timed out after the 200 ms"], work.wait, timedelta(milliseconds=200))
        tell()
    work.wait()  # the call continues
    assert tensor.eq(2).all()


def an_abort_ends_what_waits():
    rank, _ = me()
    if rank == 1:
        await_rank(0)
        return
    works = [dist.all_reduce(torch.ones(200_000), async_op=True) for _ in range(3)]
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    threading.Timer(0.5, backend.abort).start()
    for work in works:
        raises(dist.DistBackendError, ["aborted"], work.wait)
    raises(dist.DistBackendError, ["aborted"], dist.barrier)
    tell()


def a_rank_dies():
    rank, _ = me()
    dist.all_reduce(torch.ones(10))
    if rank == 1:
        os.kill(os.getpid(), 9)
    raises(dist.DistBackendError, ["all_reduce", "rank 0"], lambda: [dist.all_reduce(torch.ones(50_000))
                                                                     for _ in range(1000)])


SCRIPT = """
import os, sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("{name}", store=dist.FileStore(sys.argv[2], 2), rank=rank, world_size=2)
tensor = torch.ones(100_000)
dist.all_reduce(tensor)
assert tensor.eq(2).all()
print(dist.get_backend(), dist.group.WORLD._get_backend(torch.device("cpu")).name())
{end}
"""


def run_script(name="dynamiccl", end="", environment=None):
    """Runs a script that only names the backend, on two ranks. Returns their exit codes and output."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, "-c", SCRIPT.format(name=name, end=end), str(rank), folder + "/store"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **(environment or {})}) for rank in range(2)]
        outputs = [rank.communicate(timeout=300) for rank in ranks]
        return [(rank.returncode,) + output for rank, output in zip(ranks, outputs)]


class Order(unittest.TestCase):
    def test_calls_of_a_group_run_in_order(self):
        run_ranks(calls_of_a_group_run_in_order, 3)

    def test_tensors_live_until_the_call_is_done(self):
        run_ranks(tensors_live_until_the_call_is_done, 2)

    def test_finished_calls_keep_nothing(self):
        run_ranks(finished_calls_keep_nothing, 2)

    def test_futures_carry_results_and_callbacks(self):
        run_ranks(futures_carry_results_and_callbacks, 2)


class Groups(unittest.TestCase):
    def test_groups_of_every_kind(self):
        run_ranks(groups_of_every_kind, 4)

    def test_a_group_is_split_by_nccl(self):
        run_ranks(a_group_is_split_by_nccl, 4)

    def test_two_groups_in_opposite_order(self):
        run_ranks(two_groups_in_opposite_order, 2)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "torch.distributed turns objects into bytes with NumPy")
    def test_objects_travel(self):
        run_ranks(objects_travel, 3)

    def test_groups_leave_the_environment_alone(self):
        run_ranks(groups_leave_the_environment_alone, 2)


class PointToPoint(unittest.TestCase):
    def test_coalesced_calls_are_one_work(self):
        run_ranks(coalesced_calls_are_one_work, 3)

    def test_coalesced_by_device(self):
        run_ranks(coalesced_by_device, 2)

    def test_messages_in_a_ring(self):
        run_ranks(messages_in_a_ring, 3)

    def test_messages_beside_collectives(self):
        run_ranks(messages_beside_collectives, 2)

    def test_a_message_outlives_its_group(self):
        run_ranks(a_message_outlives_its_group, 2)


class Failures(unittest.TestCase):
    def test_wrong_input_is_refused(self):
        run_ranks(wrong_input_is_refused, 2)

    def test_torchs_own_check_finds_unequal_calls(self):
        run_ranks(torchs_own_check_finds_unequal_calls, 2)

    def test_a_late_rank_is_named_by_the_call(self):
        run_ranks(a_late_rank_is_named_by_the_call, 2, timeout=1)

    def test_a_future_ends_with_the_time_out(self):
        run_ranks(a_future_ends_with_the_time_out, 2, timeout=1)

    def test_a_wait_with_a_time_of_its_own(self):
        run_ranks(a_wait_with_a_time_of_its_own, 2)

    def test_all_works_in_flight_end_with_the_time_out(self):
        run_ranks(all_works_in_flight_end_with_the_time_out, 2, timeout=1)

    def test_an_abort_ends_what_waits(self):
        run_ranks(an_abort_ends_what_waits, 2)

    def test_a_rank_dies(self):
        run_ranks(a_rank_dies, 2, expect_death=[1])


class Scripts(unittest.TestCase):
    """PyTorch must find the backend by its name alone. A program may end without destroying its groups."""

    def require_success(self, outcomes, words):
        for code, output, errors in outcomes:
            self.assertEqual(code, 0, errors)
            self.assertEqual(output.split(), words, errors)

    def test_a_name_is_enough(self):
        self.require_success(run_script(end="dist.destroy_process_group()"), ["dynamiccl", "dynamiccl"])

    def test_a_name_for_the_cpu_alone(self):
        self.require_success(run_script("cpu:dynamiccl"), ["cpu:dynamiccl", "dynamiccl"])

    def test_an_import_where_loading_is_turned_off(self):
        environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        self.assertNotEqual(run_script(environment=environment)[0][0], 0)
        self.require_success(run_script('" + (__import__("dynamiccl_torch").NAME) + "', environment=environment),
                             ["dynamiccl", "dynamiccl"])


if __name__ == "__main__":
    unittest.main()
