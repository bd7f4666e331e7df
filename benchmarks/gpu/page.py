#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the results of a lease as Markdown tables. They go into docs/results/gpu.md, beside their explanation.

  page.py WORK      WORK is the folder `work` of what lease.sh brought home

A part that did not run is left out. A part that failed says so.
"""
import collections
import json
import pathlib
import re
import statistics
import sys

import answers


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def machine(work):
    path = work / "machine.txt"
    if path.exists():
        wanted = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()
                  if re.match(r"NVIDIA|Model name|PyTorch|carried|no MPS|\d+$|/.*mps-control$", line)]
        yield from ("## Machine", "", *(f"* {re.sub(' +', ' ', line)}" for line in wanted), "")


def interval(setting):
    if setting["low"] is None or setting["high"] is None:  # fewer than six rounds
        return f"{setting['ratio']:.3f} (interval not known)"
    return f"{setting['ratio']:.3f} ({setting['low']:.3f} to {setting['high']:.3f})"


def steps(work):
    """Prints jobs whose settings took turns, with one column per job and one row per setting."""
    jobs = {path.stem.removeprefix("ab-"): json.loads(path.read_text(encoding="utf-8")) for path in sorted(work.glob("ab-*.json"))}
    if not jobs:
        return
    names = list(dict.fromkeys(setting["name"] for job in jobs.values() for setting in job["settings"]))
    cells = {(name, job): setting for job, result in jobs.items() for setting in result["settings"] for name in [setting["name"]]}
    rows = []
    for name in names:
        row = [name]
        for job in jobs:
            setting = cells.get((name, job))
            row.append("" if setting is None else f"{setting['step_ms']:.2f} ms" if name == "default" else interval(setting))
        rows.append(row)
    rows.append(["rounds, noise of a turn"] + [f"{job['rounds']}, {100 * job['noise']:.1f} %" for job in jobs.values()])
    yield from ("## Steps of one job, settings in turns", "", *table(["setting", *jobs], rows))


def whole_jobs(work):
    """Prints the median step times of jobs that ran in turns, by mode."""
    medians = collections.defaultdict(dict)
    for path in sorted(work.glob("*-[0-9].json")):
        mode, turn = path.stem.rsplit("-", 1)
        milliseconds = json.loads(path.read_text(encoding="utf-8")).get("milliseconds", [])
        if len(milliseconds) > 40:
            medians[mode][turn] = statistics.median(milliseconds[20:])
    if medians:
        turns = sorted({turn for mode in medians.values() for turn in mode})
        rows = [[mode, *(f"{of[turn]:.2f} ms" if turn in of else "" for turn in turns)] for mode, of in sorted(medians.items())]
        yield from ("## Whole jobs, median step", "", *table(["mode", *(f"turn {turn}" for turn in turns)], rows))


def questions(work):
    rows = []
    for path in sorted(work.glob("hour-*/results.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        report = list(answers.report(lines))
        for head, answer in zip(report[::4], report[3::4]):
            rows.append([head.rsplit("  NCCL ", 1)[1], head.rsplit("  NCCL ", 1)[0], answer.removeprefix("    answer: ")])
    if rows:
        yield from ("## Questions about NCCL", "", *table(["NCCL", "question", "answer"], rows))


def plain(work):
    """Prints the tables that other scripts wrote."""
    for title, name in (("Sweep", "measure/sweep.log"), ("Rules of the sweep", "measure/tuned.txt"), ("What the object adds", "measure/observe.txt"),
                        ("Beside a load", "measure/load.txt"), ("The trainer on CUDA", "zero/losses.txt"), ("Our programs on the GPU", "device.txt")):
        path = work / name
        if path.exists() and path.read_text(encoding="utf-8").strip():
            yield from (f"## {title}", "", "```", *path.read_text(encoding="utf-8").rstrip().splitlines(), "```", "")


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    work = pathlib.Path(sys.argv[1])
    lines = [line for part in (machine, steps, whole_jobs, questions, plain) for line in part(work)]
    if not lines:
        print(f"error: {work} has no results of lease.sh; name the folder `work` of its archive", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
