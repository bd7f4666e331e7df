#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures step times of PyTorch's DDP and FSDP2 over gloo and the backend dynamiccl, in turn in the same processes.

    PYTHONPATH=build/release/lib/python python3 benchmarks/torch_step_bench.py --ranks 2 --model 60M --json out.json

A round times some steps of each backend. The program compares the two within a round, so that other load affects both.
It prints medians over the rounds, the middle half of the rounds as noise, and the processors' time, which other load
changes little.
"""
import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parents[1]
MODELS = {
    "9M": dict(layers=6, hidden=256, heads=8, vocabulary=8192),
    "60M": dict(layers=8, hidden=768, heads=12, vocabulary=2048),
}
BACKENDS = ["gloo", "dynamiccl"]
WARM_UP_STEPS = 3  # DDP makes its buckets in the second step


def load_example():
    path = ROOT / "zero_workloads/torch_backend/examples/train_gpt.py"
    spec = importlib.util.spec_from_file_location("train_gpt", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


train_gpt = load_example()


class Variant:
    """One way of training. It has its own model and its own process group."""

    def __init__(self, parallel, group, options):
        self.options = options
        torch.manual_seed(0)
        model = train_gpt.Gpt(**MODELS[options.model], sequence=options.sequence)
        if parallel == "ddp":
            self.model = DistributedDataParallel(model, process_group=group)
        else:
            mesh = DeviceMesh.from_group(group, "cpu")
            for block in model.h:
                fully_shard(block, mesh=mesh)
            self.model = fully_shard(model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.step = 0

    def run(self, steps):
        """Returns seconds per step, and processor seconds per step in all threads. Each is the maximum over ranks."""
        dist.barrier()
        begin, cpu_begin = time.perf_counter(), time.process_time()
        for _ in range(steps):
            train_gpt.train_step(self.model, self.optimizer, self.options, self.step)
            self.step += 1
        seconds = torch.tensor([time.perf_counter() - begin, time.process_time() - cpu_begin]) / steps
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        return seconds.tolist()


def measure(parallel, groups, options):
    """Returns the step times of each round, by backend."""
    options.vocabulary = MODELS[options.model]["vocabulary"]
    variants = {backend: Variant(parallel, group, options) for backend, group in groups.items()}
    for variant in variants.values():
        variant.run(WARM_UP_STEPS)
    times = {backend: [] for backend in BACKENDS}
    for number in range(options.rounds):
        for backend in BACKENDS if number % 2 == 0 else reversed(BACKENDS):
            times[backend].append(variants[backend].run(options.steps))
    parameters = sum(p.numel() for p in train_gpt.Gpt(**MODELS[options.model], sequence=options.sequence).parameters())
    return parameters, times


def rank_main(rank, options, folder, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(folder + "/store", options.ranks), rank=rank,
                            world_size=options.ranks)
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
    for parallel in options.parallel:
        measured = measure(parallel, groups, options)
        if rank == 0:
            results.put((parallel, *measured))
    dist.barrier()
    results.close()
    results.join_thread()
    os._exit(0)


def middle_half(values):
    quarters = statistics.quantiles(values, n=4)
    return quarters[0], quarters[2]


def summary(parallel, parameters, times, options):
    wall = {backend: [1000 * seconds for seconds, _ in times[backend]] for backend in BACKENDS}
    cpu = {backend: statistics.median(1000 * seconds for _, seconds in times[backend]) for backend in BACKENDS}
    ratios = [ours / gloos for ours, gloos in zip(wall["dynamiccl"], wall["gloo"])]
    low, high = middle_half(ratios)
    return {
        "parallel": parallel, "ranks": options.ranks, "parameters": parameters, "batch": options.batch,
        "sequence": options.sequence, "rounds": options.rounds, "steps_a_round": options.steps,
        "gloo_ms": statistics.median(wall["gloo"]), "dynamiccl_ms": statistics.median(wall["dynamiccl"]),
        "ratio": statistics.median(ratios), "ratio_low": low, "ratio_high": high,
        "gloo_cpu_ms": cpu["gloo"], "dynamiccl_cpu_ms": cpu["dynamiccl"], "rounds_ms": wall,
    }


def run(options):
    context = multiprocessing.get_context("fork")
    results, cases = context.Queue(), []
    with tempfile.TemporaryDirectory(prefix="torch_step_bench_") as folder:
        ranks = [context.Process(target=rank_main, args=(rank, options, folder, results)) for rank in range(options.ranks)]
        for process in ranks:
            process.start()
        for _ in options.parallel:
            cases.append(summary(*results.get(timeout=3600), options))
            case = cases[-1]
            print(f"{case['parallel']:6} {case['ranks']} ranks {case['parameters'] / 1e6:5.1f}M  "
                  f"gloo {case['gloo_ms']:7.1f} ms  dynamiccl {case['dynamiccl_ms']:7.1f} ms  "
                  f"ratio {case['ratio']:.3f} ({case['ratio_low']:.3f} to {case['ratio_high']:.3f})  "
                  f"of processors {case['gloo_cpu_ms']:.0f} and {case['dynamiccl_cpu_ms']:.0f} ms", flush=True)
        for process in ranks:
            process.join(timeout=60)
    return cases


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--model", choices=MODELS, default="60M")
    parser.add_argument("--parallel", nargs="+", choices=["ddp", "fsdp2"], default=["ddp", "fsdp2"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps of each backend in a round")
    parser.add_argument("--batch", type=int, default=4, help="sequences a rank")
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--clip", type=float, default=0.0, help="largest norm of the gradients; 0: no clipping")
    parser.add_argument("--json", help="file to write")
    return parser.parse_args()


def main():
    options = parse()
    torch.set_num_threads(1)
    cases = run(options)
    if options.json:
        machine = {"cores": os.cpu_count(), "processor": platform.processor(), "load": os.getloadavg()}
        Path(options.json).write_text(json.dumps({"torch": torch.__version__, "machine": machine, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
