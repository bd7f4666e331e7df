#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own distributed_test.py over the backend "dynamiccl", and over gloo as the control.

    PYTHONPATH=build/release/lib/python .venv/bin/python tests/zero_workloads/torch_backend/pytorchs_tests/run.py

The exit code is 1 if a test fails that passes over gloo and is not in not_applicable.py, or if a test of that list
passes. With --results FILE, it continues where an earlier run with the same file stopped.
"""
import argparse
import importlib.util
import io
import json
import os
import sys
import time
import unittest
from contextlib import redirect_stderr, redirect_stdout

BACKENDS = ("dynamiccl", "gloo")
NEEDED = ("torch", "numpy", "expecttest")


def outcome_of(case):
    """Returns (outcome, detail) of one test. The outcome is passed, failed or skipped."""
    result = unittest.TestResult()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        case.run(result)
    for failure in result.failures + result.errors:
        return "failed", failure[1]
    for skipped in result.skipped:
        return "skipped", skipped[1]
    return "passed", ""


def last_words(detail):
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    raised = [line for line in lines if "Error" in line.split(":")[0]]
    return (raised or lines or [""])[-1][:300]


def run_backend(backend, options, results):
    """Adds the outcome of each test to `results`. Returns whether all tests were run."""
    import shim

    for name, case in shim.test_cases(backend, options.ranks, options.hang_seconds).items():
        if name in results or not name.startswith(options.only):
            continue
        if time.monotonic() > options.until:
            return False
        began = time.monotonic()
        outcome, detail = outcome_of(case)
        words = last_words(detail)
        results[name] = {"outcome": outcome, "seconds": round(time.monotonic() - began, 1), "detail": words}
        print(f"{backend:10} {outcome:8} {results[name]['seconds']:6.1f} s  {name}  {words[:120]}", flush=True)
        if outcome == "failed" and options.verbose:
            print(detail, flush=True)
        save(options, backend, results)
    return True


def load(options, backend):
    if not options.results or not os.path.exists(options.results):
        return {}
    with open(options.results) as file:
        return json.load(file).get(backend, {})


def save(options, backend, results):
    if not options.results:
        return
    everything = {}
    if os.path.exists(options.results):
        with open(options.results) as file:
            everything = json.load(file)
    with open(options.results + ".new", "w") as file:
        json.dump({**everything, backend: results}, file, indent=1)
    os.replace(options.results + ".new", options.results)


def in_child(backend, options):
    """Returns one backend's results. It runs in its own process, because the shim changes PyTorch for one name."""
    results, pipe = load(options, backend), os.pipe()
    child = os.fork()
    if child == 0:
        done = run_backend(backend, options, results)
        with os.fdopen(pipe[1], "w") as file:
            json.dump([done, results], file)
        sys.stdout.flush()
        os._exit(0)
    os.close(pipe[1])
    with os.fdopen(pipe[0]) as file:
        text = file.read()
    os.waitpid(child, 0)
    if not text:
        sys.exit(f"error: the process that ran the tests over {backend} ended before they did")
    return json.loads(text)


def verdict(ours, gloos, listed):
    """Sorts the tests over our backend into kinds. Returns the names of each kind."""
    kinds = {kind: [] for kind in ("passed", "not applicable", "skipped", "fails over gloo too", "FAILED", "LISTED BUT PASSES")}
    for name, result in sorted(ours.items()):
        if result["outcome"] == "passed":
            kind = "LISTED BUT PASSES" if name in listed else "passed"
        elif result["outcome"] == "skipped":
            kind = "skipped"
        elif name in listed:
            kind = "not applicable"
        else:
            kind = "FAILED" if gloos[name]["outcome"] == "passed" else "fails over gloo too"
        kinds[kind].append(name)
    return kinds


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--only", default="", help="tests whose name begins so")
    parser.add_argument("--hang-seconds", type=int, default=90, help="a test that takes longer has failed")
    parser.add_argument("--within", type=float, default=float("inf"), help="begin no test after so many seconds; exit code 75")
    parser.add_argument("--results", help="a JSON file with what has been run, read and written")
    parser.add_argument("--page", help="write the counts and the list as a page of docs/results")
    parser.add_argument("--verbose", action="store_true", help="print the whole text of failures")
    options = parser.parse_args()
    options.until = time.monotonic() + options.within
    return options


def main():
    options = parse()
    missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: PyTorch's own tests need {', '.join(missing)}: {sys.executable} -m pip install {' '.join(missing)}")
        return 0
    from not_applicable import NOT_APPLICABLE

    results = {}
    for backend in BACKENDS:
        done, results[backend] = in_child(backend, options)
        if not done:
            print("not all were run: the time is over")
            return 75
    reasons = {name: reason for reason, names in NOT_APPLICABLE.items() for name in names}
    kinds = verdict(results["dynamiccl"], results["gloo"], reasons)
    for kind, names in kinds.items():
        print(f"{len(names):4} {kind}" + (f": {', '.join(names)}" if kind.isupper() and names else ""))
    if options.page:
        import page

        page.write(options, results, kinds, NOT_APPLICABLE)
    return 1 if kinds["FAILED"] or kinds["LISTED BUT PASSES"] else 0


if __name__ == "__main__":
    sys.exit(main())
