#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the step time of the trainer in each mode of DynamICCL, in turns.

Runs `dynamiccl-zero train` over hostccl without the object and in modes off, observe, frozen and adaptive, one after
the other, for several rounds. A mode's figure in a round is the median of its step times without the first steps. The
program prints the median over rounds. It also prints the median, least and greatest ratio to the run without the object
in the same round.

    benchmarks/step_time.py --build build/release --policy demo.dcpolicy --data shakespeare/ --json step_time.json
"""
import argparse
import statistics
import tempfile

import trained_steps

MODES = ["without", "off", "observe", "frozen", "adaptive"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trained_steps.add_arguments(parser)
    parser.add_argument("--stage", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--topology", default="two-nodes-ethernet")
    given = parser.parse_args()
    trained_steps.check(parser, given)
    return given


def step_times(given, mode):
    with tempfile.TemporaryDirectory() as folder:
        options = [] if mode == "without" else ["--mode", mode]
        if mode in ("frozen", "adaptive"):
            options += ["--policy", given.policy]
        if mode == "observe":
            options += ["--trace", f"{folder}/%r.ctrace"]
        return trained_steps.step_times(given, given.topology, options, ["--stage", given.stage])


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
    trained_steps.write_result(given, {"modes": result, "rounds": rounds})


if __name__ == "__main__":
    main()
