#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the fuzzers of tests/fuzz for a stated time, and says what they did.

    tools/fuzz/fuzz.py --seconds 300                      all of them, 300 s of the clock together
    tools/fuzz/fuzz.py --seconds 3600 --only 'import_'    an hour for those whose names hold this
    tools/fuzz/fuzz.py --json fuzz.json                   executions and coverage as JSON

Inputs that fuzzers found stay in build/fuzz/corpus; an input that broke something lies in build/fuzz/found, and running
the fuzzer with it as its only argument shows it again. Exit code 0: nothing was found, or there is no clang with
libFuzzer (said); 1: something was found; 3: the build failed.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz"
SEEDS = ROOT / "tests" / "fuzz" / "corpus"
# What an input may take: far more than any kept one does, and what a job can spare.
SECONDS_AN_INPUT = 20
MEBIBYTES = 2048


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="of the clock, for all together, after the build")
    parser.add_argument("--only", default="", help="fuzzers whose names this regular expression matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once")
    parser.add_argument("--json", help="where to write what they did; without it to stdout")
    parser.add_argument("--no-build", action="store_true", help="run what is built")
    return parser.parse_args()


def has_fuzzer():
    """Whether there is a clang that links libFuzzer."""
    if shutil.which("clang++") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "entry.cc")
        source.write_text('extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }\n')
        command = ["clang++", "-fsanitize=fuzzer,address", str(source), "-o", str(source.with_suffix(""))]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def build(jobs):
    configure = ["cmake", "-S", str(ROOT), "--preset", "fuzz"]
    compile_ = ["cmake", "--build", str(BUILD), "--parallel", str(jobs), "--target", "fuzzers"]
    for command in (configure, compile_):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout[-4000:], file=sys.stderr)
            sys.exit(3)


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(name, seconds):
    """One fuzzer for so many seconds; what it did."""
    corpus, found = BUILD / "corpus" / name, BUILD / "found" / name
    corpus.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True)
    command = [str(BUILD / "fuzz" / f"fuzz_{name}"), f"-max_total_time={seconds}", f"-timeout={SECONDS_AN_INPUT}",
               f"-rss_limit_mb={MEBIBYTES}", "-print_final_stats=1", "-max_len=16384", f"-artifact_prefix={found}/",
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


def main():
    options = arguments()
    if not has_fuzzer():
        print("skipped: fuzzing needs clang with libFuzzer (Debian: clang, libclang-rt-14-dev)")
        return 0
    if not options.no_build:
        build(options.jobs)
    names = sorted(path.name[len("fuzz_"):] for path in (BUILD / "fuzz").glob("fuzz_*"))
    names = [name for name in names if re.search(options.only, name)]
    if not names:
        print(f"error: no fuzzer matches '{options.only}'", file=sys.stderr)
        return 2
    each = max(1, options.seconds * options.jobs // len(names))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(names, pool.map(lambda name: run(name, each), names)))
    report = {"schema": 1, "date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(),
              "executions": sum(result["executions"] for result in results.values()), "fuzzers": results}
    text = json.dumps(report, indent=1) + "\n"
    if options.json:
        pathlib.Path(options.json).write_text(text)
    else:
        print(text, end="")
    broken = [name for name, result in results.items() if result["found"]]
    for name in broken:
        print(f"error: {name}: {', '.join(results[name]['found'])}\n  hint: build/fuzz/fuzz/fuzz_{name} INPUT shows it "
              f"again; log in build/fuzz/found/{name}/log.txt", file=sys.stderr)
    print(f"{len(names)} fuzzers, {report['executions']} executions, {len(broken)} found something", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
