#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step time of the trainer in each mode of DynamICCL, in turns.

Runs `dynamiccl-zero train` over hostccl without the object and in modes off, observe, frozen and adaptive, one
after the other, several rounds. A mode's figure of a round is the median of its steps' times but for the first
ones; stated are the median over rounds, and the median, least and greatest of its ratio to the run without the
object in the same round.

    tools/bench/step_time.py --build build --policy demo.dcpolicy --data shakespeare/ --json step_time.json
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

MODES = ["without", "off", "observe", "frozen", "adaptive"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder, or an installation")
    parser.add_argument("--trainer", type=pathlib.Path, help="dynamiccl-zero (default: the build's)")
    parser.add_argument("--policy", type=pathlib.Path, required=True, help="policy of frozen and adaptive")
    parser.add_argument("--data", required=True, help="text files or folder, as for dynamiccl-zero")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--stage", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--skip", type=int, default=20, help="first steps that do not count")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--topology", default="two-nodes-ethernet")
    parser.add_argument("--json", type=pathlib.Path, help="write the result here")
    given = parser.parse_args()
    if given.skip >= given.steps:
        parser.error(f"--skip {given.skip} leaves none of --steps {given.steps}: take fewer")
    for path in (given.build / "bin/dynamiccl", given.policy):
        if not path.exists():
            parser.error(f"{path} does not exist")
    return given


def command(given, mode, folder):
    run = [str(given.build / "bin/dynamiccl"), "run", "-q", "-n", str(given.ranks), "--topology", given.topology]
    if mode != "without":
        run += ["--mode", mode]
    if mode in ("frozen", "adaptive"):
        run += ["--policy", str(given.policy)]
    if mode == "observe":
        run += ["--trace", f"{folder}/%r.ctrace"]
    trainer = given.trainer or given.build / "bin/dynamiccl-zero"
    return run + ["--", str(trainer), "train", "--data", given.data, "--stage", str(given.stage), "--steps",
                  str(given.steps), "--log-every", "1000000", "--json", f"{folder}/steps.json"]


def step_times(given, mode):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command(given, mode, folder), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"error: the run in mode {mode} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        lines = (json.loads(line) for line in open(f"{folder}/steps.json", encoding="utf-8"))
        return [line["step_ms"] for line in lines if line.get("step", -1) >= given.skip]


def main():
    given = arguments()
    rounds = []
    for number in range(given.rounds):
        # The order turns, so that no mode always comes first.
        order = MODES[number % len(MODES):] + MODES[:number % len(MODES)]
        figures = {mode: statistics.median(step_times(given, mode)) for mode in order}
        rounds.append(figures)
        print(f"round {number + 1}:", ", ".join(f"{mode} {figures[mode]:.2f} ms" for mode in MODES), flush=True)
    result = {}
    for mode in MODES:
        ratios = sorted(figures[mode] / figures["without"] for figures in rounds)
        result[mode] = {"step_ms": statistics.median(figures[mode] for figures in rounds),
                        "ratio": statistics.median(ratios), "ratio_least": ratios[0], "ratio_most": ratios[-1]}
        print(f"{mode:9} {result[mode]['step_ms']:8.2f} ms  {result[mode]['ratio']:.3f} of the run without "
              f"({ratios[0]:.3f} to {ratios[-1]:.3f})")
    if given.json:
        settings = {key: str(value) for key, value in vars(given).items()}
        given.json.write_text(json.dumps({"settings": settings, "modes": result, "rounds": rounds}, indent=1) + "\n",
                              encoding="utf-8")


if __name__ == "__main__":
    main()
