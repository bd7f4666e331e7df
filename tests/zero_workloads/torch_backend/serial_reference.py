# SPDX-License-Identifier: Apache-2.0
"""The right results of the collectives, computed from the inputs of all ranks in one process."""
import torch
from torch.distributed import ReduceOp

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SMALL_FLOATS = [torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.uint32, torch.int64, torch.uint64]
REDUCED = FLOATS + SMALL_FLOATS + INTEGERS + [torch.bool]
# Types that NCCL does not know are sent as bytes.
MOVED = REDUCED + [torch.int16, torch.complex64]
OPERATORS = [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX]


def tensor_of(shape, dtype, *seeds):
    """Returns small integers. Sums and products over four ranks are exact in every type, even in 8-bit floats."""
    generator = torch.Generator().manual_seed(hash(seeds) % 2**31)
    signed = dtype.is_signed and dtype is not torch.bool
    values = torch.randint(-2 if signed else 0, 3, shape, generator=generator)
    return values.to(torch.float32).to(dtype) if dtype in SMALL_FLOATS else values.to(dtype)


def fits(op, dtype):
    return not (op == ReduceOp.AVG and dtype in [torch.bool] + SMALL_FLOATS)


def reduced(tensors, op, dtype):
    """Applies the operator to the ranks' tensors. For bool, SUM and MAX are "or", PRODUCT and MIN are "and"."""
    stacked = torch.stack([tensor.to(torch.float64) for tensor in tensors])
    if op in (ReduceOp.SUM, ReduceOp.AVG):
        result = stacked.sum(0)
    elif op == ReduceOp.PRODUCT:
        result = stacked.prod(0)
    else:
        result = stacked.amin(0) if op == ReduceOp.MIN else stacked.amax(0)
    if op == ReduceOp.AVG:
        result = result / len(tensors)
        if not dtype.is_floating_point:
            result = result.trunc()
    if dtype is torch.bool:
        return result != 0
    if op in (ReduceOp.SUM, ReduceOp.PRODUCT) and not dtype.is_floating_point:
        return result.to(torch.int64).to(dtype)
    return result.to(torch.float32).to(dtype) if dtype in SMALL_FLOATS else result.to(dtype)


def require_equal(actual, expected, what, tolerance=0.0):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, \
        f"{what}: {actual.shape} {actual.dtype}, expected {expected.shape} {expected.dtype}"
    if actual.numel() == 0:
        return
    wide = torch.complex128 if actual.is_complex() else torch.float64
    difference = (actual.to(wide) - expected.to(wide)).abs().max().item()
    bound = tolerance * max(1.0, expected.to(wide).abs().max().item())
    assert difference <= bound, f"{what}: differs by {difference} where {bound} is allowed"
