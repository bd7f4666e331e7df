#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares arms of a measurement that ran in turns. It prints medians over the turns and how far the turns are apart.

  compare_arms.py FOLDER FIRST OTHER...    reads FOLDER/{small,large}_ARM_TURN.json, which `dynamiccl bench -J` wrote

A time comes from CUDA events around each call. The time of a call is that of its slowest rank, and the time of a turn
is the median of its calls. A difference smaller than the noise of the first arm counts as none.
"""
import collections
import json
import pathlib
import re
import statistics
import sys

NAME = re.compile(r"(?:small|large)_(.+)_(\d+)\.json$")


def medians(folder):
    """Returns {arm: {bytes: [microseconds of each turn]}}."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(folder.glob("*.json")):
        match = NAME.search(path.name)
        if not match:
            continue
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            times[match[1]][row["bytes"]].append(row["out_of_place"]["per_iteration"]["p50_us"])
    return times


def spread(values):
    return 100 * (max(values) - min(values)) / statistics.median(values)


def table(times, first, others):
    yield f"{'bytes':>12} {first + ' us':>14} {'noise %':>8}" + "".join(f" {arm + ' %':>12}" for arm in others)
    for size in sorted(times[first]):
        base = times[first][size]
        line = f"{size:>12} {statistics.median(base):>14.2f} {spread(base):>8.1f}"
        for arm in others:
            own = times[arm].get(size)
            line += f" {100 * (statistics.median(own) / statistics.median(base) - 1):>+12.1f}" if own else f" {'-':>12}"
        yield line


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    times = medians(pathlib.Path(sys.argv[1]))
    missing = [arm for arm in sys.argv[2:] if arm not in times]
    if missing:
        print(f"error: no results of {', '.join(missing)} in {sys.argv[1]}", file=sys.stderr)
        return 1
    print("\n".join(table(times, sys.argv[2], sys.argv[3:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
