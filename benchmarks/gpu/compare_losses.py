#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the ZeRO stages had the same losses on CUDA, and the same as on the CPU.

  compare_losses.py FOLDER    reads cuda_{0..3}_0.jsonl and cpu_0_0.jsonl, which dynamiccl-zero --json wrote

Exit codes: 0 equal within the tolerances below, 1 not, 2 usage.
"""
import json
import pathlib
import sys

# Stages add the same numbers in another order. Single precision has 7 digits, and 20 steps lose two or three of them.
STAGES_TOLERANCE = 1e-4
# The CPU also uses other kernels for every product and function.
CPU_TOLERANCE = 2e-3


def losses(path):
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row["loss"] for row in rows if "step" in row and "loss" in row]


def difference(one, other):
    """Returns the largest relative difference of a step, or None if the runs differ in length."""
    if not one or len(one) != len(other):
        return None
    return max(abs(a - b) / abs(b) for a, b in zip(one, other))


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    base = losses(folder / "cuda_0_0.jsonl")
    others = [(f"stage {stage} on CUDA", losses(folder / f"cuda_{stage}_0.jsonl"), STAGES_TOLERANCE) for stage in (1, 2, 3)]
    others.append(("stage 0 on the CPU", losses(folder / "cpu_0_0.jsonl"), CPU_TOLERANCE))
    print(f"stage 0 on CUDA: {len(base)} steps, loss {base[0]:.5f} to {base[-1]:.5f}" if base else "stage 0 on CUDA: did not run")
    alike = bool(base) and base[-1] < base[0]
    for name, own, tolerance in others:
        found = difference(own, base)
        good = found is not None and found <= tolerance
        alike = alike and good
        said = "has not the same steps" if found is None else "bit for bit equal" if found == 0 else f"differs by {found:.1e} at most"
        print(f"{name}: {said} (allowed {tolerance:.0e}): {'ok' if good else 'NOT ALIKE'}")
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
