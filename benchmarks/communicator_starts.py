#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time to make communicators with NVIDIA's NCCL over the stand-in for CUDA, with and without the object.

Two processes of one emulated node make --communicators communicators of two ranks one after the other, and then destroy
them. Processes of each mode take turns. The program prints medians over rounds of the slower rank's times. It also
prints the median, least and greatest ratio to the run without the object in the same round.

    benchmarks/communicator_starts.py --build build/release --policy policies/starter.dcpolicy --nccl 2.28.9
"""
import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


class UniqueId(ctypes.Structure):
    """NCCL's ncclUniqueId."""

    _fields_ = [("internal", ctypes.c_char * 128)]


def check(result, what):
    if result != 0:
        sys.exit(f"communicator_starts.py: {what}: NCCL's error {result}")


def unique_id(nccl, rank, path):
    """Makes the id on rank 0 and leaves it in a file, where rank 1 finds it."""
    made = UniqueId()
    if rank == 0:
        check(nccl.ncclGetUniqueId(ctypes.byref(made)), "ncclGetUniqueId")
        path.with_suffix(".new").write_bytes(bytes(made))
        path.with_suffix(".new").rename(path)
    while not path.exists():
        time.sleep(0.0002)
    return UniqueId.from_buffer_copy(path.read_bytes())


def run_rank(rank, folder, n_communicators):
    """Prints the milliseconds of all inits and of all destroys.

    The names are looked up in the same way as a program's own names. The preloaded object is therefore called first.
    """
    nccl = ctypes.CDLL(None)
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    nccl.ncclCommDestroy.argtypes = [ctypes.c_void_p]
    nccl.cuda_standin_set_place(0, rank)
    made, init_ms = [], []
    for i in range(n_communicators):
        key, communicator = unique_id(nccl, rank, folder / str(i)), ctypes.c_void_p()
        began = time.monotonic()
        check(nccl.ncclCommInitRank(ctypes.byref(communicator), 2, key, rank), "ncclCommInitRank")
        init_ms.append(1e3 * (time.monotonic() - began))
        made.append(communicator)
    began = time.monotonic()
    for communicator in made:
        check(nccl.ncclCommDestroy(communicator), "ncclCommDestroy")
    print("figures", sum(init_ms), 1e3 * (time.monotonic() - began), flush=True)
    os._exit(0)


def run_mode(settings, stand_in, options):
    """Returns the slower rank's milliseconds for all inits and for all destroys."""
    environment = dict(stand_in, NCCL_DEBUG="WARN", PATH=os.environ["PATH"])
    if settings is not None:
        environment["LD_PRELOAD"] = f"{options.build / 'lib/libdynamiccl.so'}:{environment['LD_PRELOAD']}"
        environment["LD_LIBRARY_PATH"] += f":{options.build / 'lib'}"
        environment["NCCL_TUNER_PLUGIN"] = "libnccl-tuner-dynamiccl.so"
        environment |= settings
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--folder", folder, "--communicators", str(options.communicators)]
        ranks = [
            subprocess.Popen([*command, "--rank", str(rank)], env=environment, stdout=subprocess.PIPE, text=True)
            for rank in (0, 1)
        ]
        printed = [rank.communicate()[0] for rank in ranks]
    lines = [line.split() for text in printed for line in text.splitlines() if line.startswith("figures")]
    if len(lines) != 2:
        sys.exit("communicator_starts.py: a rank failed:\n" + "\n".join(printed))
    return [max(float(line[part]) for line in lines) for part in (1, 2)]


def modes_of(options, folder):
    policy = {"DYNAMICCL_POLICY": str(options.policy)}
    return {
        "without": None,
        "off": {"DYNAMICCL_MODE": "off"},
        "observe": {"DYNAMICCL_TRACE": f"{folder}/%p.ctrace"},
        "frozen": policy,
        "adaptive": dict(policy, DYNAMICCL_MODE="adaptive"),
    }


def compare(options):
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run(
            [options.build / "tests/standin_environment", options.nccl, "dgx_h100", folder],
            check=True, capture_output=True, text=True).stdout
        stand_in = dict(line.split("=", 1) for line in printed.splitlines())
        modes = modes_of(options, folder)
        rounds = []
        for _ in range(options.rounds):
            rounds.append({name: run_mode(settings, stand_in, options) for name, settings in modes.items()})
            for trace in pathlib.Path(folder).glob("*.ctrace*"):
                trace.unlink()
    print(f"{options.communicators} communicators of NCCL {options.nccl}, {options.rounds} rounds: ms, and times the run "
          "without the object (least to greatest)")
    for name in modes:
        texts = []
        for part in (0, 1):
            times = [one[name][part] for one in rounds]
            ratios = [one[name][part] / one["without"][part] for one in rounds]
            texts.append(f"{statistics.median(times):8.1f}  {statistics.median(ratios):.3f} "
                         f"({min(ratios):.3f} to {max(ratios):.3f})")
        print(f"{name:<10} init {texts[0]}   destroy {texts[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="build folder with tests")
    parser.add_argument("--policy", type=pathlib.Path, help="policy of modes frozen and adaptive")
    parser.add_argument("--nccl", default="2.28.9", help="a release that tools/setup/fetch_nccl.sh has fetched")
    parser.add_argument("--communicators", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options.rank, options.folder, options.communicators)
    if options.build is None or options.policy is None:
        parser.error("--build and --policy are needed")
    options.build, options.policy = options.build.resolve(), options.policy.resolve()
    compare(options)


if __name__ == "__main__":
    main()
