# SPDX-License-Identifier: Apache-2.0
"""Measures the step times of one run of the trainer over hostccl, started by `dynamiccl run`."""
import json
import pathlib
import subprocess
import sys
import tempfile


def add_arguments(parser):
    """Adds the options that name the trainer and its input."""
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder, or an installation")
    parser.add_argument("--trainer", type=pathlib.Path, help="dynamiccl-zero (default: the build's)")
    parser.add_argument("--policy", type=pathlib.Path, required=True, help="policy of the runs that take one")
    parser.add_argument("--data", required=True, help="text files or folder, as for dynamiccl-zero")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--skip", type=int, default=20, help="first steps that do not count")
    parser.add_argument("--json", type=pathlib.Path, help="write the result here")


def check(parser, given):
    if given.skip >= given.steps:
        parser.error(f"--skip {given.skip} leaves none of --steps {given.steps}: take fewer")
    for path in (given.build / "bin/dynamiccl", given.policy):
        if not path.exists():
            parser.error(f"{path} does not exist")


def checked(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout}{done.stderr}")


PYTORCH = ("ddp", "fsdp2")


def pytorch_program(python, workload, steps, batch):
    """Returns the command for PyTorch's DDP or FSDP2 over the torch backend, on a model whose step takes some 10 ms."""
    example = pathlib.Path(__file__).parents[1] / "zero_workloads/torch_backend/examples/train_gpt.py"
    return [python, example, "--parallel", workload, "--steps", steps, "--layers", 2, "--hidden", 96, "--heads", 4,
            "--sequence", 32, "--batch", batch, "--vocabulary", 256]


def pytorch_environment(build):
    return [f"PYTHONPATH={build}/lib/python", "OMP_NUM_THREADS=1"]


def pytorch_step_times(given, topology, workload, run_options, environment=()):
    """Returns the same as step_times, for rank 0 of pytorch_program. The model does not depend on a seed."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "{rank}.json"
        checked(["env", *pytorch_environment(given.build), *environment, given.build / "bin/dynamiccl", "run", "-q", "-n", given.ranks,
                 "--topology", topology, *run_options, "--", *pytorch_program(given.python, workload, given.steps, given.ranks),
                 "--json", file])
        seconds = json.loads((pathlib.Path(folder) / "0.json").read_text(encoding="utf-8"))["seconds"]
        return [1000 * one for one in seconds[given.skip:]]


def step_times(given, topology, run_options, train_options, steps=None, environment=()):
    """Returns the milliseconds of each step after given.skip, or ends the program if the run fails.

    `environment` is a list of NAME=VALUE.
    """
    trainer = given.trainer or given.build / "bin/dynamiccl-zero"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "steps.json"
        checked(["env", *environment, given.build / "bin/dynamiccl", "run", "-q", "-n", given.ranks, "--topology",
                 topology, *run_options, "--", trainer, "train", "--data", given.data, "--steps", steps or given.steps,
                 "--log-every", 1000000, "--json", file, *train_options])
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [line["step_ms"] for line in lines if line.get("step", -1) >= given.skip]


def write_result(given, result):
    if given.json:
        settings = {key: str(value) for key, value in vars(given).items()}
        given.json.write_text(json.dumps({"settings": settings, **result}, indent=1) + "\n", encoding="utf-8")
