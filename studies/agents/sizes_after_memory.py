#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows whether larger messages follow a fall of memory pressure, in traces of programs that report their memory.

Each file is what `dynamiccl trace export --to jsonl` wrote for one rank. For each file it prints the calls before the
level first fell, and the largest message before and after. It also prints at which call after the fall each new size
came. Calls of 64 bytes and less do not count, because they are a program's own counters. The levels are those of
src/decision/guard/memory_level.cc, without the margin at its borders.

    studies/agents/sizes_after_memory.py run.jsonl ...
"""
import json
import sys

LEAST_BYTES = 65


def pressure(free):
    return 2 if free < 0.10 else 1 if free < 0.25 else 0


def events(path):
    """Yields ("level", pressure) and ("call", bytes), in the order of the trace."""
    with open(path, encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record.get("kind") == "Memory":
                yield "level", pressure(record["bytes"] / record["call_number"])
            elif record.get("kind") == "Collective" and record["bytes"] >= LEAST_BYTES:
                yield "call", record["bytes"]


def report(path):
    level, calls, fell_at = None, 0, None
    known, new = set(), []
    for what, value in events(path):
        if what == "level":
            if fell_at is None and level is not None and value < level:
                fell_at, before = calls, max(known, default=0)
            level = value
            continue
        calls += 1
        if fell_at is not None and value not in known:
            new.append(f"{value} bytes at call {calls - fell_at}")
        known.add(value)
    if fell_at is None:
        return f"{path}: the level never fell in {calls} calls"
    return (f"{path}: fell after {fell_at} of {calls} calls; largest before {before} bytes, in all {max(known)}; "
            f"new sizes: {', '.join(new) or 'none'}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        print(report(name))
