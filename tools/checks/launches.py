#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts many jobs while other processes open and close connections all the time, and counts the starts that fail.

    tools/checks/launches.py [--launches 2000] [--churners 8] [--ranks 2,4]

Each job is `dynamiccl bench -g RANKS`, whose rank 0 listens at the launcher's MASTER_PORT. The other processes, called
churners, bind to any port, connect to a listener of their own and close. In total they take some 10,000 to 30,000 ports
a second. If launchers did not reserve their port, a churner would sometimes get the port that a launcher has found but
not used yet.
Exit code 1: a start failed.
"""
import argparse
import multiprocessing
import pathlib
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "release" / "bin" / "dynamiccl"


def churn(count):
    """Binds to free ports and releases them all the time, as clients, as servers and as probes for a free port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    while True:
        for _ in range(100):
            client = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()
            client.close()
            server.close()
            probe = socket.socket()
            probe.bind(("127.0.0.1", 0))
            probe.listen()
            probe.close()
        with count.get_lock():
            count.value += 200


def launch(program, ranks):
    """Returns the error output of a job that failed; None for a job that ended well."""
    job = [program, "bench", "all_reduce", "-g", str(ranks), "-b", "8", "-e", "8", "-n", "1", "-w", "0", "--rounds", "1", "--singles", "0"]
    done = subprocess.run(job, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--churners", type=int, default=8)
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks, in turns")
    parser.add_argument("--program", type=pathlib.Path, default=BUILT, help="the dynamiccl to start (default: build/release's)")
    given = parser.parse_args()
    ranks = [int(number) for number in given.ranks.split(",")]
    count = multiprocessing.Value("q", 0)
    churners = [multiprocessing.Process(target=churn, args=(count,), daemon=True) for _ in range(given.churners)]
    for churner in churners:
        churner.start()
    began = time.monotonic()
    failures = [failure for i in range(given.launches) if (failure := launch(given.program, ranks[i % len(ranks)])) is not None]
    seconds = time.monotonic() - began
    for failure in failures[:5]:
        print(failure, file=sys.stderr)
    print(f"{given.launches} launches of {given.ranks} ranks beside {given.churners} processes that took {count.value} ports "
          f"in {seconds:.0f} s: {len(failures)} failed starts")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
