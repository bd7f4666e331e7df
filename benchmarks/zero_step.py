#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares step time and memory of the ZeRO trainer with those of PyTorch's DDP and FSDP2, in turns.

Every round runs each mode once on the same number of ranks, with one thread per rank and GPTs of equal shape. The modes
are DDP and FSDP2 over gloo, the trainer's stages 0 to 3 over hostccl, and equally many ranks that do not communicate.
These ranks show the time of computing alone on the machine's shared memory.

A mode's figure in a round is the median of its steps without the first ones. The program prints medians over rounds.
For ratios it prints the median, least and greatest over rounds. Memory is the largest resident size of rank 0.

    benchmarks/zero_step.py --build build/release --python .venv/bin/python --data shakespeare/ --json zero_step.json
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile

STAGES = ["stage0", "stage1", "stage2", "stage3"]
PEERS = ["ddp", "fsdp2"]
SCRIPT = pathlib.Path(__file__).parents[1] / "zero_workloads/torch_backend/examples/train_gpt.py"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder, or an installation")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="Python that has torch")
    parser.add_argument("--data", required=True, help="text files or folder, as for dynamiccl-zero")
    parser.add_argument("--ranks", type=int, default=2)
    shape = parser.add_argument_group("model (default: 9 million parameters)")
    for name, value in dict(layers=6, hidden=352, heads=8, sequence=128).items():
        shape.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--batch", type=int, default=8, help="sequences a rank")
    parser.add_argument("--bucket-bytes", default="4M", help="the trainer's; PyTorch keeps its own default")
    parser.add_argument("--dtype", default="fp32", help="the trainer's; peers compute in fp32")
    parser.add_argument("--modes", default=",".join(["alone", *PEERS, *STAGES]),
                        help="the trainer's may name their type and the memory of their buckets: stage2:bf16, stage2:fp32:registered")
    parser.add_argument("--against", default=",".join(["alone", *PEERS]), help="modes that the others are divided by")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--skip", type=int, default=4, help="first steps that do not count")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="write the result here")
    return parser.parse_args()


def reserve_port():
    """Returns a bound socket that never listens, and its port.

    While the socket is open, no program is given this port. A program that names the port may still listen there.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved, reserved.getsockname()[1]


def run_ranks(command, ranks, world):
    """Runs the command `ranks` times, in a world of `world` ranks. Returns the peak resident bytes of rank 0."""
    reserved, port = reserve_port()
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if world > 1:
            environment.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        processes.append(subprocess.Popen([part.replace("{rank}", str(rank)) for part in command], env=environment,
                                          stdout=subprocess.DEVNULL))
    peak = 0
    for rank, process in enumerate(processes):
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"{' '.join(command)}: rank {rank} ended with status {status}")
        if rank == 0:
            peak = usage.ru_maxrss * 1024
    reserved.close()
    return peak


def shape_of(given):
    return [f"--{name}={getattr(given, name)}" for name in ("layers", "hidden", "heads", "sequence")]


def run_peer(given, mode, folder):
    report = folder / "peer.{rank}.json"
    command = [str(given.python), str(SCRIPT), "--backend", "gloo", "--parallel", mode, "--vocabulary=256",
               f"--batch={given.batch}", f"--steps={given.steps}", f"--json={report}", *shape_of(given)]
    peak = run_ranks(command, given.ranks, given.ranks)
    seconds = json.loads((folder / "peer.0.json").read_text())["seconds"]
    return [second * 1000 for second in seconds], peak


def run_trainer(given, mode, folder):
    name, dtype, memory = [*mode.split(":"), "", ""][:3]
    alone = name == "alone"
    report = folder / "trainer.{rank}.json"
    command = [str(given.build / "bin/dynamiccl-zero"), "train", "--data", given.data, f"--steps={given.steps}",
               f"--batch={given.batch if alone else given.batch * given.ranks}", f"--dtype={dtype or given.dtype}",
               f"--bucket-bytes={given.bucket_bytes}", f"--bucket-memory={memory or 'ordinary'}", f"--stage={0 if alone else name[-1]}", f"--json={report}",
               *shape_of(given)]
    peak = run_ranks(command, given.ranks, 1 if alone else given.ranks)
    lines = [json.loads(line) for line in (folder / "trainer.0.json").read_text().splitlines()]
    return [line["step_ms"] for line in lines if "step_ms" in line], peak


def measure(given, mode, folder):
    times, peak = (run_peer if mode in PEERS else run_trainer)(given, mode, folder)
    return {"ms": statistics.median(times[given.skip:]), "peak_bytes": peak}


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}


def summarize(rounds, against):
    modes = rounds[0].keys()
    result = {}
    for mode in modes:
        row = {"ms": spread([one[mode]["ms"] for one in rounds]),
               "peak_bytes": statistics.median(one[mode]["peak_bytes"] for one in rounds)}
        for other in against:
            if other in modes and other != mode:
                row[f"to_{other}"] = spread([one[mode]["ms"] / one[other]["ms"] for one in rounds])
        result[mode] = row
    return result


def print_table(result, against):
    columns = [f"to_{other}" for other in against]
    print(f"{'mode':12} {'step ms':>9} {'MiB':>7}  " + "  ".join(f"{name[3:] + ' = 1':>22}" for name in columns))
    for mode, row in result.items():
        ratios = []
        for name in columns:
            ratio = row.get(name)
            ratios.append("" if ratio is None else
                          f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['greatest']:.2f})")
        print(f"{mode:12} {row['ms']['median']:9.1f} {row['peak_bytes'] / 2**20:7.0f}  " +
              "  ".join(f"{text:>22}" for text in ratios))


def main():
    given = arguments()
    modes = given.modes.split(",")
    with tempfile.TemporaryDirectory() as folder:
        rounds = []
        for number in range(given.rounds):
            rounds.append({mode: measure(given, mode, pathlib.Path(folder)) for mode in modes})
            print(f"round {number + 1} of {given.rounds}: " +
                  ", ".join(f"{mode} {one['ms']:.0f} ms" for mode, one in rounds[-1].items()), flush=True)
    against = given.against.split(",")
    result = summarize(rounds, against)
    print_table(result, against)
    if given.json:
        settings = {name: str(value) for name, value in vars(given).items() if name not in ("json", "build", "python", "data")}
        given.json.write_text(json.dumps({"settings": settings, "rounds": rounds, "modes": result}, indent=1))


if __name__ == "__main__":
    main()
