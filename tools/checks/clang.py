#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets clang read every translation unit of a build made with g++. clang compiles nothing and only warns.

    tools/checks/clang.py [--build build/release] [--jobs 2]

CUDA's kernels are left out, because nvcc compiles them. Exit code 0: clang accepts every unit without a warning; 1: the
findings are printed; 2: there is no clang++ of version 14 or later, or no build.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GCC_ALONE = re.compile(r"-Wno-restrict|-Wno-subobject-linkage|-Wshadow=local|-mmem(set|cpy)-strategy=.*")
OLDEST = 14


def fail(error, hint):
    sys.stderr.write(f"error: {error}\n  hint: {hint}\n")
    sys.exit(2)


def clang_command(entry):
    """Returns the command with which clang reads the unit: with the same macros and folders, but without an object
    file."""
    words = [word for word in shlex.split(entry["command"]) if not GCC_ALONE.fullmatch(word)]
    output = words.index("-o")
    compiler = next(index for index, word in enumerate(words) if re.search(r"(c|g)\+\+[-\d]*$", word))
    return ["clang++", "-fsyntax-only", "-Werror", *words[compiler + 1:output], *words[output + 2:]]


def check_unit(entry):
    """Returns clang's diagnostics of one unit; empty if there are none."""
    done = subprocess.run(clang_command(entry), cwd=entry["directory"], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode != 0 else ""


def units_of(build):
    """Returns the C++ units that the build compiles. A unit that several targets compile is returned once."""
    database = build / "compile_commands.json"
    if not database.is_file():
        fail(f"{database} is not there", "tools/setup/build.sh, or --build FOLDER of a build made with Ninja")
    entries = json.loads(database.read_text())
    return [entry for entry in entries if entry["file"].endswith((".cc", ".cxx"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="units at a time")
    given = parser.parse_args()
    version = shutil.which("clang++") and subprocess.run(["clang++", "-dumpversion"], capture_output=True, text=True).stdout
    if not version or int(version.split(".")[0]) < OLDEST:
        fail(f"no clang++ of version {OLDEST} or later on PATH", "tools/setup/install.sh")
    units = units_of(given.build)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        findings = 0
        for text in pool.map(check_unit, units):
            print(text, end="", flush=True)
            findings += bool(text)
    print(f"clang {version.strip()}: {len(units)} units, {findings} with findings; {len(units) - findings} passed")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
