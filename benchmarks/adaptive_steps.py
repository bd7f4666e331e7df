#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares step times over a whole job under NCCL's choice, mode adaptive, and one config for all calls, in turns.

For each preset and stage and each seed, the trainer runs --steps steps in each of these ways:
  - as NCCL chooses ("default");
  - in mode adaptive with an empty site store;
  - with --again: in mode adaptive with the store that the previous job left;
  - with --elsewhere: in mode adaptive with a store that jobs in other topologies left;
  - with --expecting: in mode adaptive with another policy and an empty store;
  - under each of --configs, as an override rule for every call of at least 1 KiB;
  - as NCCL chooses, once more ("default again").
It prints medians over seeds of ratios to the mean of the two default runs of the same seed. The ratios are of the whole
job without its first --skip steps, of its first 50 steps, of its last fifth, and of the steps of each of --windows. It
also prints how far the two defaults are apart.

    benchmarks/adaptive_steps.py --build build/release --policy policies/starter.dcpolicy --data shakespeare/ \\
        --cells two-nodes-slow-rail/3 two-nodes-nvlink/0 --json steps.json
"""
import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile

import trained_steps

FIRST_STEPS = 50
TOLD = "adaptive, told"
EXPECTING = "adaptive, expecting"
COLLECTIVES = ("reducescatter", "allgather", "allreduce")
CELLS = [f"{preset}/{stage}" for preset in ("two-nodes-slow-rail", "two-nodes-ethernet", "two-nodes-nvlink") for stage in (0, 2, 3)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trained_steps.add_arguments(parser)
    parser.set_defaults(steps=400, skip=5)
    parser.add_argument("--cells", nargs="+", default=CELLS, help="PRESET/STAGE or FILE.toml/STAGE; stages are 0 to 3, ddp and fsdp2 (PyTorch)")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch, for ddp and fsdp2")
    parser.add_argument("--configs", nargs="+", default=["ring/simple/1", "ring/simple/2", "ring/simple/4"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="a second job in mode adaptive, with the store that the first left")
    parser.add_argument("--elsewhere", nargs="+", default=[], metavar="TOPOLOGY",
                        help="jobs of 200 steps in stages 3 and 0 in each of these write a store, which a job of each turn begins with")
    parser.add_argument("--expecting", type=pathlib.Path, metavar="POLICY",
                        help="a policy that learnt from effects on steps; a job of each turn begins with it and an empty site store")
    parser.add_argument("--windows", nargs="+", default=[], metavar="FROM-TO", help="more parts of the job to state, as steps: 280-330")
    parser.add_argument("--trainer-options", default="--batch 2 --sequence 32", help="more options of dynamiccl-zero train")
    given = parser.parse_args()
    trained_steps.check(parser, given)
    for cell in given.cells:
        if "/" not in cell:
            parser.error(f"{cell} is no PRESET/STAGE")
    given.windows = [window_of(parser, given, text) for text in given.windows]
    if given.expecting and not given.expecting.exists():
        parser.error(f"--expecting {given.expecting} does not exist")
    return given


def window_of(parser, given, text):
    """Returns the first step of a window and the step after its last."""
    begin, _, end = text.partition("-")
    if not (begin.isdigit() and end.isdigit() and given.skip <= int(begin) < int(end) <= given.steps):
        parser.error(f"--windows {text}: two steps between {given.skip} and {given.steps} like 280-330")
    return int(begin), int(end)


def rules(folder, config):
    text = "version = 1\n" + "".join(f'[[rule]]\ncollective = "{collective}"\nmin_bytes = "1K"\nconfig = "{config}"\n'
                                     for collective in COLLECTIVES)
    path = pathlib.Path(folder) / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return ["--rules", path]


def adaptive(policy, store):
    return ["--mode", "adaptive", "--policy", policy], [f"DYNAMICCL_SITE_STORE={store}"]


def find_elsewhere(given, store):
    """Runs a job in each topology of --elsewhere, one after the other. The jobs write what they find into `store`."""
    for topology in given.elsewhere:
        for stage in (3, 0):
            options, environment = adaptive(given.policy, store)
            trained_steps.step_times(given, topology, options, ["--stage", stage, *given.trainer_options.split()], steps=200,
                                     environment=environment)


def run(given, cell, arm, seed, store):
    """Returns, in ms, the mean of all steps, the mean of the first ones, the median of the last fifth, then --windows.

    There is a mean for each of --windows. `store` is the path of this turn's site store.
    """
    preset, stage = cell.rsplit("/", 1)
    with tempfile.TemporaryDirectory() as folder:
        options, environment = [], []
        if arm.startswith("adaptive"):
            options, environment = adaptive(given.expecting if arm == EXPECTING else given.policy, store)
        elif not arm.startswith("default"):
            options = rules(folder, arm)
        if stage in trained_steps.PYTORCH:
            times = trained_steps.pytorch_step_times(given, preset, stage, options, environment)
        else:
            times = trained_steps.step_times(given, preset, options, ["--stage", stage, "--seed", seed, *given.trainer_options.split()],
                                             environment=environment)
    first = times[:max(1, FIRST_STEPS - given.skip)]
    windows = [statistics.fmean(times[begin - given.skip:end - given.skip]) for begin, end in given.windows]
    return statistics.fmean(times), statistics.fmean(first), statistics.median(times[-len(times) // 5:]), *windows


def turn_of(given, cell, arms, seed, found):
    """Runs one job per arm and returns (whole, first, end, windows) by arm. `found` is the store of jobs elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        stores = {arm: f"{folder}/site.dcsite" for arm in arms}
        if given.elsewhere:
            stores[TOLD] = shutil.copy(found, f"{folder}/found.dcsite")
        return {arm: run(given, cell, arm, seed, stores[arm]) for arm in arms}


def measure(given, found):
    arms = ["default", "adaptive", *(["adaptive again"] if given.again else []), *([TOLD] if given.elsewhere else []),
            *([EXPECTING] if given.expecting else []), *given.configs, "default again"]
    rows = []
    parts = ", ".join(["whole", "first", "end", *(f"{begin}-{end}" for begin, end in given.windows)])
    width = 40 + 9 * len(given.windows)
    print(f"{'cell':24} default ms  apart  " + "".join(f"{arm + ', ' + parts:{width}}" for arm in arms[1:-1]), flush=True)
    for cell in given.cells:
        turns = [turn_of(given, cell, arms, seed, found) for seed in range(1, given.seeds + 1)]
        bases = [[(turn["default"][i] + turn["default again"][i]) / 2 for i in range(3 + len(given.windows))] for turn in turns]
        apart = statistics.median(abs(turn["default again"][2] / turn["default"][2] - 1) for turn in turns)
        ratios = {arm: [[turn[arm][i] / base[i] for turn, base in zip(turns, bases)] for i in range(len(bases[0]))] for arm in arms[1:-1]}
        rows.append({"cell": cell, "turns": turns, "apart": apart})
        text = "".join((", ".join(f"{statistics.median(one):.3f}" for one in of_arm) +
                        f" ({min(of_arm[2]):.2f} to {max(of_arm[2]):.2f})").ljust(width) for of_arm in ratios.values())
        print(f"{cell:24} {statistics.median(base[2] for base in bases):10.2f} {100 * apart:5.1f} %  {text}", flush=True)
        trained_steps.write_result(given, {"cells": rows})


def main():
    given = arguments()
    with tempfile.TemporaryDirectory() as folder:
        found = f"{folder}/found.dcsite"
        find_elsewhere(given, found)
        measure(given, found)


if __name__ == "__main__":
    main()
