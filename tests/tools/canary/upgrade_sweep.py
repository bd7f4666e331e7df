#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `dynamiccl canary` on every upgrade by one release in the cache, and lists all grave differences.

    tests/tools/canary/upgrade_sweep.py build/release/bin/dynamiccl --since 2.21 >sweep.txt

Each line is one upgrade in one world, with its verdict and its grave differences. A Markdown table by world follows. By
default, the worlds are those of ordinary machines. Arguments such as `dgx_h100:2x8` or `2x8` select worlds. The canary
keeps its results, so a sweep that was interrupted continues where it stopped.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).parent
MACHINES = ("dgx_a100", "dgx_h100", "dgx_b200", "pcie_l40s")
WORLDS = [(machine, world) for world in ("1x8", "2x8", "4x8", "16x8") for machine in MACHINES]
# These machines are less ordinary. Users report problems on such machines.
OTHER_WORLDS = [(machine, world) for machine in ("hgx_a100", "h100_one_nic.xml") for world in ("1x8", "2x8")]
OTHER_WORLDS += [("g5.xml", "1x8"), ("lambda_4xa6000.xml", "1x4"), ("gb200_nvl72", "2x4")]
VERDICTS = ("same", "changed", "worse", "fails", "not run")


def number(text):
    return tuple(map(int, text.split(".")))


def releases(since):
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dynamiccl/wheels"
    found = [entry.name.removeprefix("nccl-") for entry in folder.iterdir()]
    whole = [name for name in found if re.fullmatch(r"\d+\.\d+\.\d+", name)]
    return sorted((name for name in whole if number(name) >= number(since)), key=number)


def judge(program, machine, world, before, after):
    path = str(HERE / machine) if machine.endswith(".xml") else machine
    command = [program, "canary", before, after, "--machine", path, "--world", world, "--no-remedies", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        return "not run", [" ".join(ran.stderr.strip().splitlines()[:1]) or f"exit code {ran.returncode}"]
    judged = json.loads(ran.stdout)["judged"][0]
    grave = [
        f"{one['kind']}: {one['before']} -> {one['after']}"
        for cell in judged["cells"]
        for one in cell["differences"]
        if one["gravity"] == "grave"
    ]
    return judged["verdict"] or "not run", grave


def table(counts):
    """Returns a Markdown table of the verdicts by world, with their sums."""
    rows = [("", *VERDICTS)]
    rows += [(world, *(by_verdict[one] for one in VERDICTS)) for world, by_verdict in counts.items()]
    rows.append(("all", *(sum(by_verdict[one] for by_verdict in counts.values()) for one in VERDICTS)))
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---|" + "---:|" * len(VERDICTS), *lines[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the dynamiccl to run")
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help="dgx_h100:2x8, or 2x8 for all machines")
    parser.add_argument("--since", default="2.18.0", help="the earliest release")
    options = parser.parse_intermixed_args()
    counts = {}
    names = releases(options.since)
    for machine, world in WORLDS + OTHER_WORLDS:
        chosen = {f"{machine}:{world}", world} & set(options.worlds)
        if not chosen and (options.worlds or (machine, world) not in WORLDS):
            continue
        counts[f"{machine} {world}"] = by_verdict = collections.Counter()
        for before, after in zip(names, names[1:]):
            verdict, grave = judge(options.program, machine, world, before, after)
            by_verdict[verdict] += 1
            print(f"{machine} {world} {before} -> {after}: {verdict}", *grave, sep="; ", flush=True)
    print(table(counts))


if __name__ == "__main__":
    main()
