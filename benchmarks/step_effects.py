#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the effects of configs on training steps, as data for the config agent.

In each fabric the trainer runs in mode adaptive once for each stage. The site store of these jobs holds the effects
that their experiments found. The program writes these effects to FOLDER/FABRIC.measurements, which `dynamiccl train`
and `dynamiccl-lab-agents effects` read. It keeps stores that FOLDER already has, and leaves out their jobs.

    benchmarks/step_effects.py --build build/release --data shakespeare/ --folder effects
"""
import argparse
import pathlib
import subprocess
import sys

FABRICS = ("two-nodes-slow-rail", "benchmarks/topologies/slow_rail_fast.toml", "benchmarks/topologies/slow_rail_ethernet.toml",
           "benchmarks/topologies/slow_rail_of_three.toml", "two-nodes-slow", "two-nodes-ethernet", "two-nodes-infiniband",
           "two-nodes-nvlink", "two-nodes-steady-load", "two-nodes-bursty-load", "one-node", "one-node-nvlink")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--data", required=True, help="text files or folder, as for dynamiccl-zero")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for stores and effects")
    parser.add_argument("--fabrics", nargs="+", default=FABRICS, help="topologies of hostccl, as `run --topology` takes them")
    parser.add_argument("--stages", nargs="+", default=["3", "0"])
    parser.add_argument("--steps", type=int, default=250, help="of each job")
    return parser.parse_args()


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout}{done.stderr}")


def experiment(given, fabric, store):
    for stage in given.stages:
        run("env", f"DYNAMICCL_SITE_STORE={store}", given.build / "bin/dynamiccl", "run", "-q", "-n", 2, "--topology", fabric,
            "--mode", "adaptive", "--", given.build / "bin/dynamiccl-zero", "train", "--data", given.data, "--steps", given.steps,
            "--stage", stage, "--batch", 2, "--sequence", 32, "--log-every", 1000000)


def main():
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    for fabric in given.fabrics:
        name = pathlib.Path(fabric).stem
        store = given.folder / f"{name}.dcsite"
        if not store.exists():
            experiment(given, fabric, store)
        if not store.exists():
            print(f"{name}: its jobs left no store, so none of their experiments came to an end", flush=True)
            continue
        run(given.build / "bin/dynamiccl", "inspect", store, "--effects", given.folder / f"{name}.measurements", "--fabric", name)
        print(name, flush=True)


if __name__ == "__main__":
    main()
