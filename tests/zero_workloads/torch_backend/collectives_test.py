# SPDX-License-Identifier: Apache-2.0
"""Compares every collective, and random sequences of them, in 1 to 4 processes with a serial reference."""
import itertools
import os
import random
import unittest

import torch
import torch.distributed as dist
from ranks import run_ranks
from serial_reference import (FLOATS, MOVED, OPERATORS, REDUCED, fits, reduced, require_equal, tensor_of)
from torch.distributed import ReduceOp

SHAPES = [(0,), (1,), (3, 5), (1031,), (257, 129)]
WORLDS = [1, 2, 3, 4]
ROUNDS = int(os.environ.get("DYNAMICCL_TORCH_ROUNDS", "60"))


def me():
    return dist.get_rank(), dist.get_world_size()


def tolerance_of(op, dtype, world):
    """A mean over 3 ranks is rounded once in its type, wherever the library rounds."""
    if op != ReduceOp.AVG or world in (1, 2, 4):
        return 0.0
    return 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


# ---- each function is called on every rank, makes one call and checks its result ----

def check_all_reduce(shape, dtype, op, seed):
    rank, world = me()
    inputs = [tensor_of(shape, dtype, seed, r) for r in range(world)]
    tensor = inputs[rank].clone()
    work = dist.all_reduce(tensor, op, async_op=True)
    return work, lambda: require_equal(tensor, reduced(inputs, op, dtype), f"all_reduce {op} {dtype} {shape}",
                                       tolerance_of(op, dtype, world))


def check_reduce(shape, dtype, op, seed):
    rank, world = me()
    root = seed % world
    inputs = [tensor_of(shape, dtype, seed, r) for r in range(world)]
    tensor = inputs[rank].clone()
    work = dist.reduce(tensor, root, op, async_op=True)
    expected = reduced(inputs, op, dtype) if rank == root else inputs[rank]
    return work, lambda: rank == root and require_equal(tensor, expected, f"reduce {op} {dtype} {shape}",
                                                        tolerance_of(op, dtype, world))


def check_reduce_scatter_single(shape, dtype, op, seed):
    rank, world = me()
    inputs = [tensor_of((world,) + shape, dtype, seed, r) for r in range(world)]
    output = torch.zeros(shape, dtype=dtype)
    work = dist.reduce_scatter_single(output, inputs[rank], op, async_op=True)
    expected = reduced(inputs, op, dtype)[rank]
    return work, lambda: require_equal(output, expected, f"reduce_scatter_single {op} {dtype} {shape}",
                                       tolerance_of(op, dtype, world))


def check_reduce_scatter_list(shape, dtype, op, seed):
    rank, world = me()
    uneven = seed % 2 == 1
    shapes = [(shape[0] + (r if uneven else 0),) + shape[1:] for r in range(world)]
    inputs = [[tensor_of(shapes[part], dtype, seed, r, part) for part in range(world)] for r in range(world)]
    output = torch.zeros(shapes[rank], dtype=dtype)
    work = dist.reduce_scatter(output, inputs[rank], op, async_op=True)
    expected = reduced([inputs[r][rank] for r in range(world)], op, dtype)
    return work, lambda: require_equal(output, expected, f"reduce_scatter {op} {dtype} {shapes}",
                                       tolerance_of(op, dtype, world))


def check_broadcast(shape, dtype, seed):
    rank, world = me()
    root = seed % world
    tensor = tensor_of(shape, dtype, seed, rank)
    work = dist.broadcast(tensor, root, async_op=True)
    return work, lambda: require_equal(tensor, tensor_of(shape, dtype, seed, root), f"broadcast {dtype} {shape}")


def check_all_gather_single(shape, dtype, seed):
    rank, world = me()
    inputs = [tensor_of(shape, dtype, seed, r) for r in range(world)]
    output = torch.zeros((world,) + shape, dtype=dtype)
    if seed % 2:  # as in FSDP, the input is this rank's part of the output
        output[rank] = inputs[rank]
        work = dist.all_gather_single(output, output[rank], async_op=True)
    else:
        work = dist.all_gather_single(output, inputs[rank], async_op=True)
    return work, lambda: require_equal(output, torch.stack(inputs), f"all_gather_single {dtype} {shape}")


def check_all_gather_list(shape, dtype, seed):
    rank, world = me()
    uneven = seed % 2 == 1
    inputs = [tensor_of((shape[0] + (r if uneven else 0),) + shape[1:], dtype, seed, r) for r in range(world)]
    outputs = [torch.zeros_like(tensor) for tensor in inputs]
    work = dist.all_gather(outputs, inputs[rank], async_op=True)
    return work, lambda: [require_equal(a, b, f"all_gather {dtype} {shape}") for a, b in zip(outputs, inputs)]


def check_all_gather_coalesced(shape, dtype, seed):
    """Gathers tensors of three sizes from each rank in one call. One of them is empty."""
    rank, world = me()
    shapes = [shape, (0,), (shape[0] + 1,) + shape[1:]]
    inputs = [[tensor_of(each, dtype, seed + i, r) for i, each in enumerate(shapes)] for r in range(world)]
    outputs = [[torch.zeros_like(tensor) for tensor in of_rank] for of_rank in inputs]
    work = dist.all_gather_coalesced(outputs, inputs[rank], async_op=True)
    pairs = [pair for lists in zip(outputs, inputs) for pair in zip(*lists)]
    return work, lambda: [require_equal(a, b, f"all_gather_coalesced {dtype} {shape}") for a, b in pairs]


def check_gather(shape, dtype, seed):
    rank, world = me()
    root = seed % world
    inputs = [tensor_of(shape, dtype, seed, r) for r in range(world)]
    outputs = [torch.zeros_like(tensor) for tensor in inputs] if rank == root else None
    work = dist.gather(inputs[rank], outputs, root, async_op=True)
    return work, lambda: [require_equal(a, b, f"gather {dtype} {shape}") for a, b in zip(outputs or [], inputs)]


def check_scatter(shape, dtype, seed):
    rank, world = me()
    root = seed % world
    inputs = [tensor_of(shape, dtype, seed, r) for r in range(world)]
    output = torch.zeros(shape, dtype=dtype)
    work = dist.scatter(output, inputs if rank == root else None, root, async_op=True)
    return work, lambda: require_equal(output, inputs[rank], f"scatter {dtype} {shape}")


def check_all_to_all_single(shape, dtype, seed):
    rank, world = me()
    rows = [[(seed + 3 * source + destination) % 4 for destination in range(world)] for source in range(world)]
    inputs = [tensor_of((sum(rows[r]),) + shape, dtype, seed, r) for r in range(world)]
    received = [rows[source][rank] for source in range(world)]
    output = torch.zeros((sum(received),) + shape, dtype=dtype)
    work = dist.all_to_all_single(output, inputs[rank], received, rows[rank], async_op=True)
    expected = torch.cat([inputs[source].split(rows[source])[rank] for source in range(world)])
    return work, lambda: require_equal(output, expected, f"all_to_all_single {dtype} {shape} {rows}")


def check_all_to_all(shape, dtype, seed):
    rank, world = me()
    inputs = [[tensor_of(shape, dtype, seed, source, destination) for destination in range(world)]
              for source in range(world)]
    outputs = [torch.zeros(shape, dtype=dtype) for _ in range(world)]
    work = dist.all_to_all(outputs, inputs[rank], async_op=True)
    return work, lambda: [require_equal(outputs[source], inputs[source][rank], f"all_to_all {dtype} {shape}")
                          for source in range(world)]


REDUCTIONS = [check_all_reduce, check_reduce, check_reduce_scatter_single, check_reduce_scatter_list]
MOVES = [check_broadcast, check_all_gather_single, check_all_gather_list, check_all_gather_coalesced, check_gather,
         check_scatter, check_all_to_all_single, check_all_to_all]


def finish(pair):
    work, check = pair
    if work is not None:
        work.wait()
        assert work.done() if hasattr(work, "done") else work.is_completed()  # a future or a work
    check()


def every_reduction():
    seeds = itertools.count()
    for check, dtype, op in itertools.product(REDUCTIONS, REDUCED, OPERATORS):
        if fits(op, dtype):
            for shape in SHAPES:
                finish(check(shape, dtype, op, next(seeds)))


def every_move():
    seeds = itertools.count()
    for check, dtype, shape in itertools.product(MOVES, MOVED, SHAPES):
        finish(check(shape, dtype, next(seeds)))


def random_sequence(seed):
    """Issues up to eight calls at once. Each rank waits for them in its own random order."""
    shared, own = random.Random(seed), random.Random(f"{seed} {dist.get_rank()}")
    for case in range(ROUNDS):
        pending = []
        for call in range(shared.randint(1, 8)):
            shape = (shared.choice([0, 1, 7, 64, 1000, 40_000, 300_000]),)
            if shared.random() < 0.5:
                dtype, op = shared.choice(REDUCED), shared.choice(OPERATORS)
                if fits(op, dtype):
                    pending.append(shared.choice(REDUCTIONS)(shape, dtype, op, shared.randrange(1000)))
            else:
                pending.append(shared.choice(MOVES)(shape, shared.choice(MOVED), shared.randrange(1000)))
        own.shuffle(pending)
        for pair in pending:
            finish(pair)


def pre_multiplied_sums():
    rank, world = me()
    for dtype in FLOATS:
        for factor in (0.5, torch.tensor([0.25])):
            inputs = [tensor_of((33,), dtype, 5, r) for r in range(world)]
            tensor = inputs[rank].clone()
            dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
            require_equal(tensor, (reduced(inputs, ReduceOp.SUM, torch.float64) * float(factor)).to(dtype),
                          f"pre-multiplied sum {dtype}")


def real_numbers_at_two_ranks():
    """A sum of two numbers is the same bit for bit with every algorithm. NaN and infinity must be kept."""
    rank, world = me()
    for dtype in FLOATS:
        inputs = [torch.randn(10_001, generator=torch.Generator().manual_seed(r)).to(dtype) for r in range(world)]
        inputs[0][:2] = torch.tensor([float("nan"), float("inf")])
        tensor = inputs[rank].clone()
        dist.all_reduce(tensor)
        expected = inputs[0] + inputs[1]
        assert torch.equal(tensor.nan_to_num(), expected.nan_to_num()) and tensor[0].isnan(), dtype


def dense_layouts():
    """Calls that keep the shape accept tensors with any order of dimensions in memory, if there are no gaps."""
    rank, world = me()
    image = torch.full((2, 3, 4, 5), float(rank + 1)).to(memory_format=torch.channels_last)
    dist.all_reduce(image)
    assert image.eq(world * (world + 1) / 2).all()
    transposed = tensor_of((7, 3), torch.float32, rank).t()
    dist.broadcast(transposed, 0)
    require_equal(transposed, tensor_of((7, 3), torch.float32, 0).t(), "broadcast of a transposed tensor")


def messages_to_oneself():
    """A batch is an NCCL group. In a group a rank may send to itself."""
    rank, _ = me()
    sent, received = torch.full((100_000,), float(rank)), torch.full((100_000,), -1.0)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, rank), dist.P2POp(dist.irecv, received, rank)]):
        work.wait()
    require_equal(received, sent, "message to oneself")


class Collectives(unittest.TestCase):
    def on_every_world(self, function, *arguments):
        for world in WORLDS:
            with self.subTest(world=world):
                run_ranks(function, world, *arguments)

    def test_every_reduction(self):
        self.on_every_world(every_reduction)

    def test_every_move(self):
        self.on_every_world(every_move)

    def test_random_sequences(self):
        for world in WORLDS:
            seed = int(os.environ.get("DYNAMICCL_TORCH_SEED", random.randrange(10**6)))
            with self.subTest(world=world, repeat_with=f"DYNAMICCL_TORCH_SEED={seed}"):
                run_ranks(random_sequence, world, seed)

    def test_messages_to_oneself(self):
        self.on_every_world(messages_to_oneself)

    def test_pre_multiplied_sums(self):
        self.on_every_world(pre_multiplied_sums)

    def test_real_numbers(self):
        run_ranks(real_numbers_at_two_ranks, 2)

    def test_dense_layouts(self):
        self.on_every_world(dense_layouts)


if __name__ == "__main__":
    unittest.main()
