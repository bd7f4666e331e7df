#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the map of step times, under every config of each collective alone and under the best ones together.

A cell is PRESET/WORKLOAD. Workloads are the stages 0 to 3 of dynamiccl-zero, ddp and fsdp2 (PyTorch over the torch
backend). Each cell is two jobs of `dynamiccl ab`. In the first job all configs take turns, each for one collective
while the others keep NCCL's choice. The second job runs for --final-rounds rounds. Four settings take turns in it:
NCCL's choice, the best configs of all collectives together, the best config for all collectives, and NCCL's choice once
more. The difference between the two runs of NCCL's choice is the noise.

    benchmarks/step_map.py --build build/release --data shakespeare/ --python .venv/bin/python3 --json map.json
    benchmarks/step_map.py --json docs/results/step-map.json.xz --table
"""
import argparse
import json
import lzma
import pathlib
import subprocess
import sys

import trained_steps

COLLECTIVES = {
    "allreduce": [f"{algorithm}/{protocol}" for algorithm in ("ring", "tree") for protocol in ("ll", "ll128", "simple")] + ["nvls/simple"],
    "reducescatter": ["ring/ll", "ring/ll128", "ring/simple", "nvls/simple", "pat/simple"],
    "allgather": ["ring/ll", "ring/ll128", "ring/simple", "nvls/simple", "pat/simple"],
}
CHANNELS = (1, 2, 4, 8)
USED_BY = {
    "0": ("allreduce",),
    "ddp": ("allreduce",),
    "1": ("allreduce", "allgather"),
    "2": ("reducescatter", "allgather"),
    "3": ("reducescatter", "allgather"),
    "fsdp2": ("reducescatter", "allgather"),
}
RANKS = {"asymmetric-nodes": 4, "four-nodes-degraded-link": 4}
PRESETS = ("two-nodes-slow-rail", "two-nodes-bursty-load", "two-nodes-steady-load", "two-nodes-ethernet", "two-nodes-infiniband",
           "two-nodes-nvlink", "two-nodes-slow", "one-node", "one-node-nvlink", "asymmetric-nodes", "four-nodes-degraded-link")
TURN_STEPS = 3
STEPS_BEFORE = 40  # by then the steps are known, and DDP has made its buckets


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="build folder, or an installation")
    parser.add_argument("--data", help="text files or folder, as for dynamiccl-zero")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch")
    parser.add_argument("--cells", nargs="+", default=[f"{preset}/{workload}" for preset in PRESETS for workload in USED_BY])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--final-rounds", type=int, default=40)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="the result, .json or .json.xz; cells that it has already are left out")
    parser.add_argument("--table", action="store_true", help="measure nothing: print the result as a table")
    given = parser.parse_args()
    if not given.table and not (given.build and given.data):
        parser.error("--build and --data are needed to measure (--table only prints what --json has)")
    return given


def rounded(value):
    """Returns the value with its numbers rounded to four decimals, far below their noise."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def read_cells(path):
    if not path.exists():
        return []
    data = path.read_bytes()
    return json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)["cells"]


def write_cells(given, cells):
    text = json.dumps({"rounds": given.rounds, "final_rounds": given.final_rounds, "cells": rounded(cells)}) + "\n"
    given.json.write_bytes(lzma.compress(text.encode(), preset=9) if given.json.suffix == ".xz" else text.encode())


def ranks(preset):
    return RANKS.get(preset, 2)


def program(given, preset, workload, steps):
    if workload in trained_steps.PYTORCH:
        return trained_steps.pytorch_program(given.python, workload, steps, ranks(preset))
    return [given.build / "bin/dynamiccl-zero", "train", "--data", given.data, "--steps", steps, "--stage", workload, "--batch", ranks(preset),
            "--sequence", 32, "--log-every", 1000000]


def compare(given, cell, settings, rounds):
    preset, workload = cell.split("/")
    steps = STEPS_BEFORE + rounds * len(settings) * TURN_STEPS
    command = ["env", *trained_steps.pytorch_environment(given.build), given.build / "bin/dynamiccl", "ab", *settings, "-q",
               "-n", ranks(preset), "--topology", preset, "--json", given.json.with_suffix(".one"), "--",
               *program(given, preset, workload, steps)]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {cell} failed ({done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(given.json.with_suffix(".one").read_text(encoding="utf-8"))


def measure(given, cell):
    used = USED_BY[cell.split("/")[1]]
    settings = ["default"] + [f"{collective}={pair}/{channels}" for collective in used for pair in COLLECTIVES[collective]
                              for channels in CHANNELS]
    single = compare(given, cell, settings, given.rounds)
    rows = {row["name"]: row for row in single["settings"]}
    bests = []
    for collective in used:
        own = [row for name, row in rows.items() if name.startswith(collective + "=")]
        best = min(own, key=lambda row: row["ratio"])
        if best["ratio"] < 1:
            bests.append(best["name"])
    finals = ["default"] + ([",".join(bests)] if bests else [])
    finals += [name for name in dict.fromkeys(best.split("=")[1] for best in bests) if name not in finals]
    finals += ["ring/simple/1", "ring/simple/4"]
    finals = list(dict.fromkeys(finals)) + ["nccl"]
    final = compare(given, cell, finals, given.final_rounds)
    return {"cell": cell, "ranks": ranks(cell.split("/")[0]), "single": single, "final": final}


def line_of(row):
    final = row["final"]["settings"]
    best = min(final[1:-1], key=lambda each: each["ratio"])
    return (f"{row['cell']:32} {final[0]['step_ms']:8.2f} ms  best {best['ratio']:.3f} ({best['low']:.3f} to {best['high']:.3f}) {best['name']:60}"
            f" default again {final[-1]['ratio']:.3f}  noise of a turn {100 * row['final']['noise']:.1f} %")


def markdown(rows):
    """Prints the table of docs/results/step-map.md."""
    print("| preset, workload | default, ms | default again | alone: AllReduce | ReduceScatter | AllGather | together | ring/simple/1 | ring/simple/4 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        final = {each["name"]: each for each in row["final"]["settings"]}
        singles = []
        for collective in ("allreduce", "reducescatter", "allgather"):
            own = [each for each in row["single"]["settings"] if each["name"].startswith(collective + "=")]
            best = min(own, key=lambda each: each["ratio"]) if own else None
            singles.append(f"{best['name'].split('=')[1]} {best['ratio']:.2f}" if best else "")
        together = next((each for name, each in final.items() if "," in name), None)
        ratio = lambda each: f"{each['ratio']:.3f} ({each['low']:.2f} to {each['high']:.2f})" if each else ""
        print(f"| {row['cell'].replace('/', ', ')} | {final['default']['step_ms']:.1f} | {final['nccl']['ratio']:.3f} | {' | '.join(singles)} "
              f"| {ratio(together)} | {ratio(final.get('ring/simple/1'))} | {ratio(final.get('ring/simple/4'))} |")


def main():
    given = arguments()
    if given.table:
        return markdown(read_cells(given.json))
    rows = read_cells(given.json)
    for cell in given.cells:
        if any(row["cell"] == cell for row in rows):
            continue
        rows.append(measure(given, cell))
        print(line_of(rows[-1]), flush=True)
        write_cells(given, rows)
    given.json.with_suffix(".one").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
