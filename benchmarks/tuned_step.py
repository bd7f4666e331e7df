#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the step time of each ZeRO stage as NCCL chooses and as DynamICCL chooses, over presets of hostccl.

For each preset and stage a short run is recorded, its calls are replayed under every config (`dynamiccl replay
--compare --best-rules`), and a long run in mode adaptive fills a site store. Then, for each seed, the arms run in
turns:

    default, ours, before, calibrated, best, default again     the middle ones in another order each time

"ours" is mode adaptive with --policy and that site store. "before" is the same with the object of --before, another
installation, and with a store of its own. "calibrated" is NCCL's cost model with its constants fitted to --sweep
(docs/hostccl_calibration.md). "best" is the rules of the replay's fastest configs. Without --before or --sweep, its arm
is left out.

A run's figure is the median of its step times without the first steps. The program prints, over seeds, the median ratio
of an arm to the mean of the two default runs of its seed, with a 95 % interval (bootstrap over seeds). It also prints
how far the two defaults are apart. A smaller difference than that is noise.

    benchmarks/tuned_step.py --build build/release --policy p.dcpolicy --data shakespeare/ --sweep map.measurements --json t.json
"""
import argparse
import copy
import math
import pathlib
import random
import statistics
import tempfile

import trained_steps

COMPARED = {"ours": "ours", "before": "ours before", "calibrated": "calibrated default", "best": "best of the replay"}
ADAPTIVE = ["ours", "before"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trained_steps.add_arguments(parser)
    parser.add_argument("--topologies", nargs="+",
                        default=["two-nodes-ethernet", "two-nodes-slow-rail", "two-nodes-nvlink"])
    parser.add_argument("--stages", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--learning-steps", type=int, default=200, help="of the run that fills the site store")
    parser.add_argument("--sweep", type=pathlib.Path, help="measurements of the topologies, for the calibrated default")
    parser.add_argument("--lab", type=pathlib.Path, help="dynamiccl-lab (default: the build's)")
    parser.add_argument("--before", type=pathlib.Path, help="an installation to compare this build with")
    parser.add_argument("--arms", nargs="+", choices=COMPARED, default=list(COMPARED), help="which to compare, of those there are")
    parser.add_argument("--trainer-options", default="", help="more options of dynamiccl-zero train, in one argument")
    given = parser.parse_args()
    trained_steps.check(parser, given)
    given.lab = given.lab or given.build / "bin/dynamiccl-lab"
    if given.sweep and not given.lab.exists():
        parser.error(f"{given.lab} does not exist: configure with -DDYNAMICCL_BUILD_STUDIES=ON, or name it with --lab")
    if given.before and not (given.before / "bin/dynamiccl").exists():
        parser.error(f"{given.before}/bin/dynamiccl does not exist")
    absent = [arm for arm, needs in (("calibrated", given.sweep), ("before", given.before)) if not needs]
    given.compared = [arm for arm in COMPARED if arm in given.arms and arm not in absent]
    return given


class Cell:
    """One stage on one preset. Its folder holds what is known about it before the turns."""

    def __init__(self, given, topology, stage, folder):
        self.given, self.topology, self.stage = given, topology, stage
        self.folder = pathlib.Path(folder)

    def train(self, arm, options, seed, steps=None):
        given = copy.copy(self.given)
        given.trainer = given.trainer or given.build / "bin/dynamiccl-zero"
        if arm == "before":
            given.build = given.before
        environment = [f"DYNAMICCL_SITE_STORE={self.folder}/{arm}.dcsite"] if arm in ADAPTIVE else []
        train_options = ["--stage", self.stage, "--seed", seed, *given.trainer_options.split()]
        return trained_steps.step_times(given, self.topology, options, train_options, steps, environment)

    def prepare(self):
        if "best" in self.given.compared:
            self.find_best()
        if "calibrated" in self.given.compared:
            trained_steps.checked([self.given.lab, "hostccl-calibration", "rules", self.given.sweep, "--topology", self.topology,
                                   "-o", f"{self.folder}/calibrated.csv"])
        for arm in ADAPTIVE:
            if arm in self.given.compared:
                self.train(arm, self.options(arm), 1, self.given.learning_steps)

    def find_best(self):
        self.train("observe", ["--mode", "observe", "--trace", f"{self.folder}/%r.ctrace"], 1, self.given.skip + 3)
        traces = [f"{self.folder}/{rank}.ctrace" for rank in range(self.given.ranks)]
        trained_steps.checked([self.given.build / "bin/dynamiccl", "replay", *traces, "--topology", self.topology,
                               "--steps", 2, 4, "--compare", "--rounds", 3, "--best-rules", f"{self.folder}/best.csv"])

    def options(self, arm):
        if arm in ADAPTIVE:
            return ["--mode", "adaptive", "--policy", self.given.policy]
        return ["--rules", f"{self.folder}/{arm}.csv"] if arm in self.given.compared else []

    def turn(self, seed):
        between = random.Random(seed).sample(self.given.compared, k=len(self.given.compared))
        return {arm: statistics.median(self.train(arm, self.options(arm), seed))
                for arm in ["default", *between, "default again"]}


def interval(ratios, draws=2000):
    """Returns the 95 % interval of the median, by resampling the seeds."""
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws) - 1]


def pooled(cells, arm, draws=2000):
    """Returns the geometric mean of an arm's ratios to the mean of its turn's defaults, with a 95 % interval."""
    logs = [math.log(2 * turn[arm] / (turn["default"] + turn["default again"])) for cell in cells for turn in cell["turns"]]
    generator = random.Random(1)
    means = sorted(statistics.fmean(generator.choices(logs, k=len(logs))) for _ in range(draws))
    return [math.exp(value) for value in (statistics.fmean(logs), means[int(0.025 * draws)], means[int(0.975 * draws) - 1])]


def summary(turns, compared):
    result = {}
    base = [(turn["default"] + turn["default again"]) / 2 for turn in turns]
    for arm in compared:
        ratios = [turn[arm] / of for turn, of in zip(turns, base)]
        low, high = interval(ratios)
        result[arm] = {"ratio": statistics.median(ratios), "low": low, "high": high}
    apart = [abs(turn["default again"] / turn["default"] - 1) for turn in turns]
    return {"default_ms": statistics.median(base), "apart": statistics.median(apart), **result}


def main():
    given = arguments()
    cells = []
    print(f"{'preset':24} stage  default ms  A/A apart   " + "".join(f"{COMPARED[arm]:24}" for arm in given.compared),
          flush=True)
    for topology in given.topologies:
        for stage in given.stages:
            with tempfile.TemporaryDirectory() as folder:
                cell = Cell(given, topology, stage, folder)
                cell.prepare()
                turns = [cell.turn(seed) for seed in range(1, given.seeds + 1)]
            row = {"topology": topology, "stage": stage, "turns": turns, **summary(turns, given.compared)}
            cells.append(row)
            arms = "   ".join(f"{row[arm]['ratio']:.3f} ({row[arm]['low']:.3f} to {row[arm]['high']:.3f})"
                              for arm in given.compared)
            print(f"{topology:24} {stage:5} {row['default_ms']:11.2f} {100 * row['apart']:8.1f} %   {arms}", flush=True)
            trained_steps.write_result(given, {"cells": cells})
    all_cells = {arm: pooled(cells, arm) for arm in given.compared}
    for arm, (mean, low, high) in all_cells.items():
        print(f"all turns, {COMPARED[arm]}: {mean:.3f} ({low:.3f} to {high:.3f}) of default")
    trained_steps.write_result(given, {"cells": cells, "pooled": all_cells})


if __name__ == "__main__":
    main()
