#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the order of a sweep is worth, rehearsed on a record.

It prints the first two tables of docs/results/agents-sweeping.md.

    studies/agents/sweep_orders.py RECORD.measurements [--dynamiccl build/release/bin/dynamiccl]

The orders get the even repeats of the record, and the odd ones judge them (`dynamiccl sweep --rehearse`, `dynamiccl
eval`). It takes 6 minutes on one core.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

BUDGETS = (1.5, 3, 6, 12, 24, 36)  # seconds; the whole record takes 71.4
SEEDS = (1, 2, 3, 4, 5)
POLICY_BUDGET = 6
ROWS = {"own sweep": "the sweep by itself (picked by one of its two repeats)", "policy": "policy", "policy without gate": "policy without gate"}


def run(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


class Rehearsal:
    def __init__(self, program, record, folder):
        self.program, self.record, self.folder = program, record, folder

    def sweep(self, order, seed, budget):
        part = self.folder / "part.measurements"
        for old in (part, self.folder / "part.measurements.journal"):
            old.unlink(missing_ok=True)
        run(self.program, "sweep", "--rehearse", self.record, "--order", order, "--seed", seed, "--budget", f"{budget}s", "-o", part)
        return part

    def judge(self, part, seed, iterations):
        """Returns each chooser's regret in percent and its share of keys surely over 5 % slower than the default."""
        policy, answer = self.folder / "part.dcpolicy", self.folder / "eval.json"
        run(self.program, "train", "--measurements", part, "--structure-iterations", 1, "--config-iterations", iterations,
            "--seed", seed, "-o", policy)
        run(self.program, "eval", "--policy", policy, "--trained-on", part, "--measurements", self.record, "--json", answer)
        rows = json.loads(answer.read_text())["config"]
        return {row["chooser"]: (100 * row["mean_regret"], row["keys_surely_more_than_5_percent_slower"]) for row in rows}


def cell(values):
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.1f} to {max(values):.1f})"


def times_by_config(path):
    """Returns the times of each config, with the default separate, by topology, collective and bytes."""
    found = {}
    for row in map(json.loads, path.read_text().splitlines()):
        if row.get("kind") == "row":
            config = tuple(row[name] for name in ("default", "algorithm", "protocol", "channels"))
            found.setdefault(tuple(row[name] for name in ("topology", "collective", "bytes")), {})[config] = row["us"]
    return found


def own_regret(record, swept):
    """Returns the mean percent by which the sweep's choice is slower than the best config.

    The choice is the config with the least median in the sweep's repeats, or the default if a key was not measured.
    """
    regrets = []
    for key, configs in record.items():
        default = next((config for config in configs if config[0]), None)
        if not default:
            continue
        best = min(configs, key=lambda config: statistics.median(configs[config][0::2]))
        tried = swept.get(key, {})
        chosen = min(tried, key=lambda config: statistics.median(tried[config])) if tried else default
        judged = {config: statistics.median(configs[config][1::2]) for config in (chosen, best)}
        regrets.append(100 * (judged[chosen] / judged[best] - 1))
    return statistics.mean(regrets)


def own_choice(rehearsal):
    record = times_by_config(rehearsal.record)
    print(f"default: {own_regret(record, {}):.1f}\n\n| budget (of all) | active | grid | random |\n|---|---|---|---|")
    for budget in BUDGETS:
        cells = []
        for order in ("active", "grid", "random"):
            found = [own_regret(record, times_by_config(rehearsal.sweep(order, seed, budget)))
                     for seed in (SEEDS if order == "random" else (1,))]
            cells.append(cell(found))
        print(f"| {budget:g} s ({100 * budget / 71.4:.0f} %) | {' | '.join(cells)} |", flush=True)


def policies(rehearsal):
    found = {order: [rehearsal.judge(rehearsal.sweep(order, seed if order == "random" else 1, POLICY_BUDGET), seed, 500)
                     for seed in SEEDS] for order in ("active", "grid", "random")}
    print(f"\n| who, default {found['grid'][0]['default'][0]:.1f} | active | grid | random |\n|---|---|---|---|")
    for chooser, name in ROWS.items():
        unlike = {order: sorted({round(one[chooser][0], 3) for one in found[order]}) for order in found}
        print(f"| {name} | {' | '.join(cell(unlike[order] if len(unlike[order]) == 1 else [one[chooser][0] for one in found[order]]) for order in found)} |")
    surely = (statistics.mean(one["policy"][1] for one in found[order]) for order in found)
    print(f"| keys surely more than 5 % slower than the default, by the policy, of 180 | {' | '.join(f'{keys:.1f}' for keys in surely)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("--dynamiccl", default="build/release/bin/dynamiccl")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Rehearsal(options.dynamiccl, options.record, pathlib.Path(folder))
        own_choice(rehearsal)
        policies(rehearsal)


if __name__ == "__main__":
    main()
