#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step time of each ZeRO stage as NCCL chooses and as DynamICCL chooses, over presets of hostccl.

For each preset and stage a short run is recorded, its calls are replayed under every config (`dynamiccl replay
--compare --best-rules`), and a long run in mode adaptive fills a site store. Then, for each seed, the arms run in turns:

    default, ours, best, default again

"ours" is mode adaptive with --policy and that site store, "best" the rules of the replay's fastest configs. A run's
figure is the median of its steps' times but for the first ones. Stated are, over seeds, the median ratio of an arm to
the mean of the two default runs of its seed with a 95 % interval (bootstrap over seeds), and how far the two defaults
are apart: what is not beyond that is noise.

    tools/bench/tuned_step.py --build build --policy p.dcpolicy --data shakespeare/ --json tuned_step.json
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ARMS = ["default", "ours", "best", "default again"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder, or an installation")
    parser.add_argument("--trainer", type=pathlib.Path, help="dynamiccl-zero (default: the build's)")
    parser.add_argument("--policy", type=pathlib.Path, required=True, help="policy of the arm ours")
    parser.add_argument("--data", required=True, help="text files or folder, as for dynamiccl-zero")
    parser.add_argument("--topologies", nargs="+", default=["two-nodes-ethernet", "two-nodes-slow-rail", "two-nodes-nvlink"])
    parser.add_argument("--stages", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--skip", type=int, default=10, help="first steps that do not count")
    parser.add_argument("--learning-steps", type=int, default=200, help="of the run that fills the site store")
    parser.add_argument("--trainer-options", default="", help="more options of dynamiccl-zero train, in one argument")
    parser.add_argument("--json", type=pathlib.Path, help="write the result here")
    given = parser.parse_args()
    if given.skip >= given.steps:
        parser.error(f"--skip {given.skip} leaves none of --steps {given.steps}: take fewer")
    for path in (given.build / "bin/dynamiccl", given.policy):
        if not path.exists():
            parser.error(f"{path} does not exist")
    return given


def checked(command, environment=None):
    done = subprocess.run(["env", *(environment or []), *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout}{done.stderr}")


class Cell:
    """One stage on one preset; its folder holds what is known of it before the turns."""

    def __init__(self, given, topology, stage, folder):
        self.given, self.topology, self.stage = given, topology, stage
        self.folder = pathlib.Path(folder)
        self.program = str(given.build / "bin/dynamiccl")

    def train(self, options, steps, seed, environment=None):
        steps_file = self.folder / "steps.json"
        trainer = self.given.trainer or self.given.build / "bin/dynamiccl-zero"
        checked([self.program, "run", "-q", "-n", str(self.given.ranks), "--topology", self.topology, *options, "--",
                 str(trainer), "train", "--data", self.given.data, "--stage", str(self.stage), "--steps", str(steps),
                 "--seed", str(seed), "--log-every", "1000000", "--json", str(steps_file),
                 *self.given.trainer_options.split()], environment)
        lines = [json.loads(line) for line in steps_file.read_text(encoding="utf-8").splitlines()]
        return [line["step_ms"] for line in lines if line.get("step", -1) >= self.given.skip]

    def prepare(self):
        self.train(["--mode", "observe", "--trace", f"{self.folder}/%r.ctrace"], self.given.skip + 3, 1)
        traces = [f"{self.folder}/{rank}.ctrace" for rank in range(self.given.ranks)]
        checked([self.program, "replay", *traces, "--topology", self.topology, "--steps", "2", "4", "--compare",
                 "--rounds", "3", "--best-rules", f"{self.folder}/best.csv"])
        self.train(self.options("ours"), self.given.learning_steps, 1, self.environment("ours"))

    def options(self, arm):
        if arm == "ours":
            return ["--mode", "adaptive", "--policy", str(self.given.policy)]
        return ["--rules", f"{self.folder}/best.csv"] if arm == "best" else []

    def environment(self, arm):
        return [f"DYNAMICCL_SITE_STORE={self.folder}/site.dcsite"] if arm == "ours" else []

    def turn(self, seed):
        return {arm: statistics.median(self.train(self.options(arm), self.given.steps, seed, self.environment(arm)))
                for arm in ARMS}


def interval(ratios, draws=2000):
    """95 % of the median, by resampling the seeds."""
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws) - 1]


def summary(turns):
    result = {}
    base = [(turn["default"] + turn["default again"]) / 2 for turn in turns]
    for arm in ("ours", "best"):
        ratios = [turn[arm] / of for turn, of in zip(turns, base)]
        low, high = interval(ratios)
        result[arm] = {"ratio": statistics.median(ratios), "low": low, "high": high}
    apart = [abs(turn["default again"] / turn["default"] - 1) for turn in turns]
    return {"default_ms": statistics.median(base), "apart": statistics.median(apart), **result}


def main():
    given = arguments()
    cells = []
    print(f"{'preset':24} stage  default ms  A/A apart   ours                    best of the replay", flush=True)
    for topology in given.topologies:
        for stage in given.stages:
            with tempfile.TemporaryDirectory() as folder:
                cell = Cell(given, topology, stage, folder)
                cell.prepare()
                turns = [cell.turn(seed) for seed in range(1, given.seeds + 1)]
            row = {"topology": topology, "stage": stage, "turns": turns, **summary(turns)}
            cells.append(row)
            arms = "   ".join(f"{row[arm]['ratio']:.3f} ({row[arm]['low']:.3f} to {row[arm]['high']:.3f})"
                              for arm in ("ours", "best"))
            print(f"{topology:24} {stage:5} {row['default_ms']:11.2f} {100 * row['apart']:8.1f} %   {arms}", flush=True)
            if given.json:
                settings = {key: str(value) for key, value in vars(given).items()}
                given.json.write_text(json.dumps({"settings": settings, "cells": cells}, indent=1) + "\n",
                                      encoding="utf-8")


if __name__ == "__main__":
    main()
