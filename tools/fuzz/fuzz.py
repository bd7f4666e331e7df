#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the fuzzers of tests/fuzz for a given time, and prints one line about each.

    tools/fuzz/fuzz.py --seconds 300                      all fuzzers, 300 s of wall-clock time in total, after the build
    tools/fuzz/fuzz.py --within 300                       300 s in total, of which the build takes at most 240 s
    tools/fuzz/fuzz.py --seconds 3600 --only '^settings$' --jobs 1     one fuzzer for an hour on one core
    tools/fuzz/fuzz.py --seconds 300 --json fuzz.json --add            adds executions and coverage to a JSON file

Inputs that increase coverage stay in build/fuzz/corpus (with --within: build/fuzz-quick). An input that broke something
is in build/fuzz/found; running the fuzzer with this file as its only argument shows the fault again. Exit code 0:
nothing was found, or the fuzzers were skipped because there is no clang with libFuzzer or no time was left after the
build; 1: something was found; 3: the build failed.
"""

import argparse
import base64
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The preset "fuzz" makes fast fuzzers for runs of hours, "fuzz-quick" builds quickly for runs of minutes. Both are
# presets of CMake.
BUILDS = {"fuzz": ROOT / "build" / "fuzz", "fuzz-quick": ROOT / "build" / "fuzz-quick"}
SEEDS = ROOT / "tests" / "fuzz" / "corpus"
# Limits on one input: its seconds here, its memory in the next line. No input of the corpus comes near them, even
# without optimisation on a machine under load.
SECONDS_AN_INPUT = 120
MEBIBYTES = 2048
# Inputs of at most this many bytes are printed, for places such as CI where nobody can fetch the file.
PRINTED_BYTES = 600


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="of the clock, for all together, after the build")
    parser.add_argument("--within", type=int, help="instead: with the build")
    parser.add_argument("--only", default="", help="fuzzers whose names this regular expression matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once")
    parser.add_argument("--json", help="where to write what they did")
    parser.add_argument("--add", action="store_true", help="to what that file says of earlier runs")
    parser.add_argument("--no-build", action="store_true", help="run what is built")
    return parser.parse_args()


def has_fuzzer():
    """Whether clang++ exists and can link libFuzzer."""
    if shutil.which("clang++") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "entry.cc")
        source.write_text('extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }\n')
        command = ["clang++", "-fsanitize=fuzzer,address", str(source), "-o", str(source.with_suffix(""))]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run_until(command, end):
    """Returns the command's output, or None if the command did not finish by the time `end` and was stopped. Exits with
    code 3 if the command fails."""
    # ccache needs this setting to cache with a precompiled header, whose macros are the same in all files here.
    environment = dict(os.environ, CCACHE_SLOPPINESS="pch_defines,time_macros")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=max(1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        # On SIGINT ninja removes the files that it has written only in part.
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        return None
    if process.returncode != 0:
        print(output[-4000:], file=sys.stderr)
        sys.exit(3)
    return output


def build(preset, names, jobs, seconds):
    """Builds the fuzzers one after the other until `seconds` have passed. Those with the fewest build steps come first,
    so that as many as possible can run."""
    end = time.monotonic() + seconds
    folder = BUILDS[preset]
    if run_until(["cmake", "-S", str(ROOT), "--preset", preset], end) is None:
        return
    steps = {name: run_until(["ninja", "-C", str(folder), "-n", f"fuzz_{name}"], end) for name in names}
    for name in sorted(names, key=lambda name: len(steps[name] or "")):
        if time.monotonic() >= end or run_until(["ninja", "-C", str(folder), f"-j{jobs}", f"fuzz_{name}"], end) is None:
            return


def entries():
    """Returns the names of all fuzzers, built or not."""
    return [path.name for path in sorted(SEEDS.iterdir())]


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(folder, name, seconds, seed):
    """Runs one fuzzer for `seconds` and returns its numbers and the inputs that broke something. With `seed` 0 each run
    has another seed."""
    corpus, found = folder / "corpus" / name, folder / "found" / name
    corpus.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True)
    command = [str(folder / "fuzz" / f"fuzz_{name}"), f"-max_total_time={seconds}", f"-timeout={SECONDS_AN_INPUT}",
               f"-rss_limit_mb={MEBIBYTES}", f"-seed={seed}", "-print_final_stats=1", "-max_len=16384", f"-artifact_prefix={found}/",
               str(corpus), str(SEEDS / name)]
    environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1", DYNAMICCL_LOG="error")
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)
    log = done.stderr
    broken = sorted(str(path.relative_to(ROOT)) for path in found.iterdir())
    if done.returncode != 0 or broken:
        pathlib.Path(found, "log.txt").write_text(log)
        broken = broken or ["no input: see log.txt"]
    return {"executions": last_number(r"stat::number_of_executed_units:\s*(\d+)", log) or last_number(r"#(\d+)", log),
            "edges": last_number(r"cov: (\d+)", log), "features": last_number(r"ft: (\d+)", log),
            "corpus": len(list(corpus.iterdir())), "seconds": seconds, "found": broken}


def commit():
    answer = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False)
    return answer.stdout.strip() or "unknown"


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores, {model.group(1) if model else platform.machine()}"


def tell(folder, name, result):
    verdict = "FOUND" if result["found"] else "ok"
    print(f"{verdict:6}{name:26}{result['executions']:>10} executions {result['edges']:>6} edges "
          f"{result['corpus']:>5} inputs {result['seconds']:>5} s", flush=True)
    for path in result["found"]:
        place = folder.relative_to(ROOT)
        print(f"      {path}\n      hint: {place}/fuzz/fuzz_{name} {path} shows it again; log: "
              f"{place}/found/{name}/log.txt", flush=True)
        content = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b""
        if 0 < len(content) <= PRINTED_BYTES:
            print(f"      base64: {base64.b64encode(content).decode()}", flush=True)


def run_all(folder, names, seconds, jobs, seed):
    each = max(1, seconds * jobs // len(names))
    results = {}

    def run_one(name):
        results[name] = run(folder, name, each, seed)
        tell(folder, name, results[name])

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run_one, names))
    return {name: results[name] for name in names}


def write(path, results, add):
    """Writes each fuzzer's numbers with the date and commit of its last run. With `add`, executions and seconds are
    added to those in the file."""
    earlier = json.loads(path.read_text())["fuzzers"] if add and path.exists() else {}
    for name, result in results.items():
        for counted in ("executions", "seconds"):
            result[counted] += earlier.get(name, {}).get(counted, 0)
        result |= {"date": datetime.date.today().isoformat(), "commit": commit()}
    path.write_text(json.dumps({"schema": 1, "machine": machine(), "fuzzers": dict(sorted((earlier | results).items()))},
                               indent=1) + "\n")


def main():
    options = arguments()
    began = time.monotonic()
    if not has_fuzzer():
        print("skipped: fuzzing needs clang with libFuzzer (Debian: clang, libclang-rt-14-dev)")
        return 0
    wanted = [name for name in entries() if re.search(options.only, name)]
    if not wanted:
        print(f"error: no fuzzer matches '{options.only}'", file=sys.stderr)
        return 2
    preset = "fuzz-quick" if options.within else "fuzz"
    folder = BUILDS[preset]
    if not options.no_build:
        build(preset, wanted, options.jobs, options.within * 4 / 5 if options.within else 24 * 3600)
    names = [name for name in wanted if (folder / "fuzz" / f"fuzz_{name}").exists()]
    if len(names) < len(wanted):
        print(f"skipped: not built in time: {', '.join(name for name in wanted if name not in names)}")
    if not options.no_build:
        print(f"{len(names)} of {len(wanted)} fuzzers, built in {time.monotonic() - began:.0f} s", flush=True)
    if not names:
        return 0
    seconds = int(began + options.within - time.monotonic()) if options.within else options.seconds
    # CI judges a change, so chance should play no part: the seed is fixed, and each run begins with the corpus of the
    # last run.
    results = run_all(folder, names, seconds, options.jobs, 1 if options.within else 0)
    if options.json:
        write(pathlib.Path(options.json), results, options.add)
    broken = [name for name in names if results[name]["found"]]
    print(f"{len(names)} fuzzers, {sum(result['executions'] for result in results.values())} executions, "
          f"{len(broken)} found something{': ' + ', '.join(broken) if broken else ''}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
