#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the results in real_nccl_matrix's JSON file as a Markdown table with a row per release, machine and world.

    tests/real_nccl/results_table.py build/release/nccl_releases.json
"""
import json
import sys

DOORS = ["preload", "tuner", "both", "static_plugin"]
NO_DOOR = ("no STATIC_PLUGIN", "no tuner interface")


def text_of(cell):
    """Returns the table's text for one run: why it was skipped, the first check that failed, or how many calls were compared."""
    if cell["skipped"]:
        return "no such door" if cell["skipped"].startswith(NO_DOOR) else "SKIPPED: " + cell["skipped"]
    failing = [finding for finding in cell["findings"] if not finding["holds"]]
    if failing:
        return f"FAILS: {failing[0]['check']}: {failing[0]['detail'].splitlines()[0][:100]}"
    compared = {finding["check"]: finding["calls_compared"] for finding in cell["findings"]}
    asked = f"{compared['asked']} asked" if cell["tuner_version"] >= 2 else "recorded only"
    return f"{compared['off']} off, {compared['observe']} observe, {asked}"


def main(path):
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)
    doors = [door for door in DOORS if any(cell["door"] == door for cell in cells)]
    rows = {}
    for cell in cells:
        world = f"{cell['nodes']}x{cell['ranks_per_node']}"
        key = (cell["release"], cell["tuner_version"] or "none", cell["machine"], world)
        rows.setdefault(key, {})[cell["door"]] = text_of(cell)
    print("| " + " | ".join(["NCCL", "tuner version", "machine", "nodes x ranks", *doors]) + " |")
    print("|---" * (4 + len(doors)) + "|")
    for key, by_door in rows.items():
        print("| " + " | ".join(map(str, [*key, *(by_door.get(door, "") for door in doors)])) + " |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
