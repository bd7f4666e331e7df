# SPDX-License-Identifier: Apache-2.0
"""Tests futures, their callbacks, PyTorch's registry of works, and coalescing blocks."""
import importlib.util
import threading
import unittest

import torch
import torch.distributed as dist
from ranks import await_rank, run_ranks, tell
from torch import nn
from torch.distributed._functional_collectives import allow_inflight_collective_as_graph_input_ctx
from torch.distributed.distributed_c10d import _coalescing_manager

# A call that is stuck ends with an error after this many seconds.
STUCK = 20


def sum_of(value):
    """Issues an AllReduce and returns its work while the call is still in flight."""
    return dist.all_reduce(torch.full((200_000,), float(value)), async_op=True)


def a_callback_waits_for_a_call():
    """The callback waits by the call's work, by its future, and inside a callback of that future."""
    world = dist.get_world_size()

    def innermost(done):
        return dist.all_reduce(done.value() + 1, async_op=True).get_future().wait()[0]

    def callback(done):
        tensor = done.value()[0] + 1
        dist.all_reduce(tensor, async_op=True).wait()
        return sum_of(tensor[0]).get_future().then(lambda inner: inner.value()[0]).then(innermost).wait()

    result = sum_of(1).get_future().then(callback).wait()
    assert result.eq((((world + 1) * world) * world + 1) * world).all(), result[0]


def callbacks_of_two_groups_wait_for_each_other():
    """A callback that waits must not block a thread that the other group's calls need."""
    groups = [dist.new_group(), dist.new_group()]
    entered = [threading.Event(), threading.Event()]

    def callback(mine):
        def wait_for_the_other(_):
            entered[mine].set()
            assert entered[1 - mine].wait(STUCK)
            tensor = torch.ones(1000)
            dist.all_reduce(tensor, group=groups[mine])
            return tensor
        return wait_for_the_other

    def use(mine):
        future = dist.all_reduce(torch.ones(100_000), group=groups[mine], async_op=True).get_future()
        results[mine] = future.then(callback(mine)).wait()

    results = [None, None]
    # Each group has a thread, because then() itself runs the callback if the call is already done.
    threads = [threading.Thread(target=use, args=(mine,)) for mine in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        assert result.eq(dist.get_world_size()).all()


def a_future_is_complete_after_the_wait():
    for elements in (1, 200_000):
        for _ in range(200):
            work = dist.all_reduce(torch.ones(elements), async_op=True)
            future = work.get_future()
            work.wait()
            assert future.done() and future.value()[0].eq(dist.get_world_size()).all()


def a_callback_sees_the_failure():
    """The callback must run when the call has timed out, and a wait inside it must end."""
    if dist.get_rank() == 1:
        await_rank(0)
        return
    seen = []

    def callback(done):
        try:
            done.value()
        except RuntimeError as error:
            seen.append(str(error))
        try:
            sum_of(1).wait()
        except dist.DistBackendError as error:
            seen.append(str(error))

    dist.all_reduce(torch.ones(100_000), async_op=True).get_future().then(callback).wait()
    assert len(seen) == 2 and "Timed out" in seen[0] and "cannot be used any more" in seen[1], seen
    tell()


def waited_works_leave_the_registry():
    registered = torch._C._distributed_c10d._get_work_registry_size
    with allow_inflight_collective_as_graph_input_ctx():
        work = dist.all_reduce(torch.ones(10), async_op=True)
        assert registered() == 1, registered()
        work.wait()
        assert registered() == 0, registered()
        tensor = torch.ones(200_000)
        dist.all_reduce(tensor, async_op=True)
        torch.ops._c10d_functional.wait_tensor(tensor)
        assert registered() == 0 and tensor.eq(dist.get_world_size()).all()
    dist.all_reduce(torch.ones(10), async_op=True).wait()
    assert registered() == 0


def train_with_power_sgd(steps=12):
    """Returns the losses of a small net. A hook compresses its gradients in callbacks that issue calls and wait."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    model = nn.parallel.DistributedDataParallel(net)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(steps):
        loss = model(torch.randn(8, 64, generator=generator)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


def a_call_of_another_thread_is_no_part_of_a_block():
    rank = dist.get_rank()
    inside, outside = torch.full((2000,), float(rank)), torch.full((4_000_000,), float(rank))
    with _coalescing_manager(device=torch.device("cpu"), async_ops=True) as block:
        dist.broadcast(inside, 1)
        thread = threading.Thread(target=dist.broadcast, args=(outside, 1))
        thread.start()
        thread.join()
        assert outside.eq(1).all(), "the other thread did not wait for its call"
    block.wait()
    assert inside.eq(1).all()


def exchange(sent, received):
    other = 1 - dist.get_rank()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, received, other)]):
        work.wait()


def a_block_that_fails_is_dropped():
    """torch.distributed does not end a coalescing block if an exception leaves it."""
    rank, check = dist.get_rank(), unittest.TestCase()
    mine, received = torch.full((2000,), float(rank)), torch.zeros(2000)
    wrong = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.isend, mine, 1 - rank, tag=3)]
    with check.assertRaisesRegex(ValueError, "send: tag 3"):
        dist.batch_isend_irecv(wrong)
    tensor = mine.clone()
    dist.broadcast(tensor, 1)
    assert tensor.eq(1).all(), "the call joined the block that failed"
    exchange(mine, received)
    assert received.eq(1 - rank).all()
    with check.assertRaisesRegex(KeyError, "of the program"):
        with _coalescing_manager(device=torch.device("cpu")):
            dist.broadcast(mine, 1)
            raise KeyError("of the program")
    exchange(mine, received.zero_())
    assert received.eq(1 - rank).all() and mine.eq(rank).all()
    with check.assertRaisesRegex(ValueError, "broadcast: "):
        with _coalescing_manager(device=torch.device("cpu")):
            dist.broadcast(mine[::2], 1)
    dist.broadcast(mine, 1)
    assert mine.eq(1).all(), "the call joined the block whose arguments were wrong"


class Callbacks(unittest.TestCase):
    def test_a_callback_waits_for_a_call(self):
        run_ranks(a_callback_waits_for_a_call, 2, timeout=STUCK)

    def test_callbacks_of_two_groups_wait_for_each_other(self):
        run_ranks(callbacks_of_two_groups_wait_for_each_other, 2, timeout=STUCK)

    def test_a_future_is_complete_after_the_wait(self):
        run_ranks(a_future_is_complete_after_the_wait, 2)

    def test_a_callback_sees_the_failure(self):
        run_ranks(a_callback_sees_the_failure, 2, timeout=1)

    def test_a_call_of_another_thread_is_no_part_of_a_block(self):
        run_ranks(a_call_of_another_thread_is_no_part_of_a_block, 2, timeout=STUCK)

    def test_a_block_that_fails_is_dropped(self):
        run_ranks(a_block_that_fails_is_dropped, 2, timeout=STUCK)

    def test_waited_works_leave_the_registry(self):
        run_ranks(waited_works_leave_the_registry, 2)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "PyTorch's PowerSGD hook needs NumPy")
    def test_power_sgd_trains_as_over_gloo(self):
        """On two ranks the losses must be equal bit for bit."""
        self.assertEqual(run_ranks(train_with_power_sgd, 2, timeout=STUCK), run_ranks(train_with_power_sgd, 2, backend="gloo"))


if __name__ == "__main__":
    unittest.main()
