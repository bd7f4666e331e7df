#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the best config of each cell of a sweep as override rules (docs/formats/override_rules.md).

A cell gets a rule only if its best config beats NCCL's own choice by more than the middle half of both scatters. The
other cells are left to NCCL.

  rules_of_sweep.py gpu-sweep.measurements > best.csv
"""
import collections
import json
import statistics
import sys


def cells(path):
    """Returns {(collective, bytes): rows}."""
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row.get("kind") == "row":
                found[row["collective"], row["bytes"]].append(row)
    return found


def quarter(row, share):
    return sorted(row["us"])[round(share * (len(row["us"]) - 1))]


def best_rule(rows):
    own = [row for row in rows if row["default"]]
    forced = [row for row in rows if not row["default"]]
    if not own or not forced:
        return None
    best = min(forced, key=lambda row: statistics.median(row["us"]))
    return best if quarter(best, 0.75) < quarter(own[0], 0.25) else None


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = cells(sys.argv[1])
    if not found:
        print(f"error: no rows in {sys.argv[1]}", file=sys.stderr)
        return 1
    for (collective, size), rows in sorted(found.items()):
        best = best_rule(rows)
        if best:
            print(f"{collective.lower()},{size},{size},{best['algorithm'].lower()},{best['protocol'].lower()},"
                  f"{best['channels']},-1,-1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
