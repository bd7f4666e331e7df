#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `dynamiccl canary` over every upgrade by one release in the cache, on ordinary machines, and lists what was grave.

    tests/tools/canary/upgrade_sweep.py build/release/bin/dynamiccl >sweep.txt

Each line is one upgrade in one world with its verdict and what is grave; the last line counts. Cells are kept by the canary,
so a sweep that was ended goes on where it stopped. WORLD arguments limit it: `dgx_h100:2x8`.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
MACHINES = ("dgx_a100", "dgx_h100", "dgx_b200", "hgx_a100", "pcie_l40s", "h100_one_nic.xml", "g5.xml")
WORLDS = [(machine, world) for world in ("1x8", "2x8", "4x8") for machine in MACHINES]
WORLDS += [("lambda_4xa6000.xml", "1x4"), ("gb200_nvl72", "2x4"), ("dgx_a100", "16x8"), ("dgx_h100", "16x8")]


def releases():
    folder = pathlib.Path.home() / ".cache/dynamiccl/wheels"
    found = [re.fullmatch(r"nccl-(\d+)\.(\d+)\.(\d+)", entry.name) for entry in folder.iterdir()]
    return [".".join(map(str, one)) for one in sorted(tuple(map(int, match.groups())) for match in found if match)]


def judge(program, machine, world, before, after):
    path = str(HERE / machine) if machine.endswith(".xml") else machine
    command = [program, "canary", before, after, "--machine", path, "--world", world, "--no-remedies", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 2:
        return "not run", [ran.stderr.strip().splitlines()[0]]
    judged = json.loads(ran.stdout)["judged"][0]
    grave = [
        f"{one['kind']}: {one['before']} -> {one['after']}"
        for cell in judged["cells"]
        for one in cell["differences"]
        if one["gravity"] == "grave"
    ]
    return judged["verdict"] or "not run", grave


def main():
    program, *wanted = sys.argv[1:]
    counts = collections.Counter()
    names = releases()
    for machine, world in WORLDS:
        if wanted and f"{machine}:{world}" not in wanted:
            continue
        for before, after in zip(names, names[1:]):
            verdict, grave = judge(program, machine, world, before, after)
            counts[verdict] += 1
            print(f"{machine} {world} {before} -> {after}: {verdict}", *grave, sep="; ", flush=True)
    print(f"{counts.total()} upgrades:", ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))


if __name__ == "__main__":
    main()
