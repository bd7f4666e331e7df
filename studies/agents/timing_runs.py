#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records jobs over hostccl whose fabric or ranks change at a known call, with the times of all ranks.

Runs AllReduces of several sizes in turn on several emulated fabrics. Some fabrics are quiet. In the others, from a
known call on, the links are degraded, strangers load them in bursts, one rank is late, a link loses its speed, or the
sizes change. Each job becomes a trace in which all calls are timed on every rank. runs.jsonl says what happened in each
job (docs/formats/timing_runs.md). `dynamiccl-lab-agents timing` trains and judges detectors on such a folder.

    studies/agents/timing_runs.py --build build/release -o timing-runs
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

# name: nodes, ranks, latency in us, bandwidth in 10^9 bytes per second, jitter in us, sizes. The split goes by the
# beginning of the name. Detectors learn on "learn" and are judged on "held", which has other fabrics and ranks.
FABRICS = {
    "learn-infiniband-2": (2, 2, 30, 1.5, 0, [16384, 131072, 524288]),
    "learn-infiniband-4": (2, 4, 30, 1.5, 0, [16384, 131072, 524288]),
    "learn-slow-2": (2, 2, 300, 0.15, 0, [4096, 32768, 131072]),
    "learn-jitter-2": (2, 2, 60, 1.0, 10, [8192, 65536, 262144, 524288]),
    "learn-three-nodes-3": (3, 3, 60, 0.8, 0, [8192, 65536, 262144]),
    "learn-asymmetric-3": (2, 3, 40, 1.2, 0, [16384, 131072, 524288]),
    "held-nvlink-2": (2, 2, 20, 5, 0, [65536, 524288, 1048576]),
    "held-ethernet-2": (2, 2, 100, 0.5, 0, [8192, 65536, 262144]),
    "held-ethernet-4": (2, 4, 100, 0.5, 0, [8192, 65536, 262144, 524288]),
    "held-jitter-2": (2, 2, 100, 0.5, 20, [8192, 65536, 262144]),
    "held-three-nodes-3": (3, 3, 150, 0.4, 0, [4096, 65536, 131072]),
    "held-asymmetric-3": (2, 3, 80, 0.6, 0, [8192, 65536, 262144]),
}
FACTORS = [1.25, 1.5, 2.0]
BURST_MS = 2.0  # as long as a few calls, like the load of a neighbour's steps


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder, with guarded_job")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder to write; made")
    parser.add_argument("--quiet-calls", type=int, default=20000, help="of each fabric (default: %(default)s)")
    parser.add_argument("--quiet-run", type=int, default=5000, help="calls of a quiet job (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=4, help="jobs of each event and fabric")
    parser.add_argument("--before", type=int, default=500, help="calls before an event at least")
    parser.add_argument("--after", type=int, default=700, help="calls after it")
    parser.add_argument("--fabrics", default="", help="only those whose name has this in it")
    parser.add_argument("--minutes", type=float, default=1e9, help="no new job after so long; jobs are in random order")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for path in (given.build / "bin/dynamiccl", given.build / "tests/guarded_job"):
        if not path.exists():
            parser.error(f"{path} does not exist: ninja -C {given.build} dynamiccl hostccl_nccl dynamiccl_preload guarded_job")
    if (given.output / "runs.jsonl").exists():
        parser.error(f"{given.output}/runs.jsonl exists: name another folder")
    return given


def topology(fabric, event, seed):
    nodes, _, latency, bandwidth, jitter, _ = FABRICS[fabric]
    lines = ["version = 1", f"nodes = {nodes}", f"seed = {seed}", "[link.inter]", f"latency_us = {latency}",
             f"bandwidth_gbps = {bandwidth}", f"jitter_us = {jitter}"]
    # The bursts are as long as their pauses, so the mean time becomes factor times as long.
    fields = {"degraded": lambda f: [f"degrade = {1 / f:.6f}"],
              "one-link": lambda f: ["from = 0", "to = 1", f"degrade = {1 / f:.6f}"],
              "congested": lambda f: [f"load = {1 - 1 / (1 + 2 * (f - 1)):.6f}", f"burst_on_ms = {BURST_MS}",
                                      f"burst_off_ms = {BURST_MS}"]}
    if event["kind"] in fields:
        # at_call counts from 1.
        lines += ["[[event]]", f"at_call = {event['at_call'] + 1}"] + fields[event["kind"]](event["factor"])
    return "\n".join(lines) + "\n"


def record(given, fabric, event, calls, seed, name):
    nodes, ranks, _, _, _, sizes = FABRICS[fabric]
    environment = dict(os.environ, DYNAMICCL_TIMES="all", JOB_BYTES=",".join(map(str, sizes)), JOB_TIMES="/dev/null")
    if event["kind"] == "straggler":
        environment["JOB_LATE"] = f"{ranks - 1} {event['at_call']} {event['late_us']}"
    if event["kind"] == "sizes":
        environment["JOB_BYTES_FROM"] = f"{event['at_call']} {','.join(map(str, event['sizes']))}"
    with tempfile.TemporaryDirectory() as folder:
        toml = pathlib.Path(folder, "fabric.toml")
        toml.write_text(topology(fabric, event, seed))
        load = os.getloadavg()[0]
        begun = time.monotonic()
        done = subprocess.run(
            [str(given.build / "bin/dynamiccl"), "record", "-q", "-n", str(ranks), "--topology", str(toml), "-o",
             str(given.output / name), "--", str(given.build / "tests/guarded_job"), f"{folder}/id", str(calls)],
            env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: the job ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return {"trace": name, "sha256": hashlib.sha256((given.output / name).read_bytes()).hexdigest(),
            "fabric": fabric, "ranks": ranks, "seed": seed, "calls": calls, "event": event["kind"],
            "factor": event.get("factor", 1), "at_call": event.get("at_call", -1),
            "load": round(max(load, os.getloadavg()[0]), 2), "seconds": round(time.monotonic() - begun, 2)}


def median_us(path):
    """Returns the median time of all timed calls of a finished trace, over all sections (docs/formats/trace.md)."""
    data, at, times = path.read_bytes(), 0, []
    while at < len(data):
        first, count, size = (struct.unpack_from("<Q", data, at + place)[0] for place in (24, 40, 512))
        for record_at in range(at + first + 64, at + first + 64 + 64 * count, 64):
            if data[record_at + 32] == 1 and data[record_at + 50]:
                times.append(struct.unpack_from("<I", data, record_at + 52)[0] / 1000)
        at += size
    return statistics.median(times)


def events_of(given, typical_us, sizes, rng):
    events = []
    for _ in range(given.repeats):
        for factor in FACTORS:
            for kind in ("degraded", "congested", "straggler"):
                events.append({"kind": kind, "factor": factor, "late_us": max(1, round((factor - 1) * typical_us))})
        events.append({"kind": "one-link", "factor": 2.0})
        events.append({"kind": "sizes", "factor": 2.0, "sizes": [2 * size for size in sizes]})
    for event in events:
        event["at_call"] = given.before + rng.randrange(given.before // 2)
    rng.shuffle(events)
    return events


class Runs:
    """Writes runs.jsonl, whose last line has the hash of the lines before it."""

    def __init__(self, path):
        self.path, self.text, self.count = path, "", 0
        self.add({"magic": "dynamiccl-timing-runs", "version": 1})

    def add(self, line):
        self.text += json.dumps(line) + "\n"
        self.count += 1
        end = {"end": self.count, "sha256": hashlib.sha256(self.text.encode()).hexdigest()}
        new = self.path.with_suffix(".new")
        new.write_text(self.text + json.dumps(end) + "\n")
        new.rename(self.path)


def main():
    given = arguments()
    given.output.mkdir(parents=True, exist_ok=True)
    runs, rng, seed = Runs(given.output / "runs.jsonl"), random.Random(given.seed), given.seed * 100000
    fabrics = [name for name in FABRICS if given.fabrics in name]
    typical, plan, begun = {}, [], time.monotonic()
    for fabric in fabrics:
        seed += 1
        first = record(given, fabric, {"kind": "quiet"}, given.quiet_run, seed, f"{fabric}-quiet-{seed}.ctrace")
        typical[fabric] = median_us(given.output / first["trace"])
        runs.add(first)
        print(f"{fabric}: {typical[fabric]:.0f} us a call, {first['seconds']} s, load {first['load']}", flush=True)
        plan += [(fabric, {"kind": "quiet"})] * max(0, given.quiet_calls // given.quiet_run - 1)
        plan += [(fabric, event) for event in events_of(given, typical[fabric], FABRICS[fabric][5], rng)]
    until = begun + 60 * given.minutes
    rng.shuffle(plan)  # a disturbance of the machine then affects all kinds of jobs alike
    for index, (fabric, event) in enumerate(plan):
        seed += 1
        if time.monotonic() > until:
            print(f"time is up after {index} of {len(plan)} jobs")
            break
        calls = given.quiet_run if event["kind"] == "quiet" else event["at_call"] + given.after
        runs.add(record(given, fabric, event, calls, seed, f"{fabric}-{event['kind']}-{seed}.ctrace"))
        if index % 50 == 0:
            print(f"{index} of {len(plan)} jobs, load {os.getloadavg()[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
