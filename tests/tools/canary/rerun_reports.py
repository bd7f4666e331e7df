#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/results/canary.md's tables again, and prints what the page says beside what they say now.

    tests/tools/canary/rerun_reports.py build/release/bin/dynamiccl >reports.txt

A command that needs a release which is not in the cache, or a machine that is not described in this folder, says so in
its output. Arguments such as `1946` select the reports whose row contains them.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import time

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[2] / "docs/results/canary.md"
COMMAND = re.compile(r"`(\d+\.\d+\.\d+ .*--machine [^`]*)`")


def reports():
    """Returns (report, arguments of canary, what the page says) for each row of the page that has a command."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.count(" | ") > 1]
    found = [(row[0], COMMAND.search(row[1]), row[2:]) for row in rows]
    return [(report, command[1], "; ".join(says)) for report, command, says in found if command]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the dynamiccl to run")
    parser.add_argument("selected", nargs="*", metavar="TEXT", help="run only reports whose row contains a TEXT")
    options = parser.parse_args()
    for report, arguments, says in reports():
        if options.selected and not any(text in f"{report} {arguments}" for text in options.selected):
            continue
        print(f"== {report}\ndynamiccl canary {arguments}\nthe page says: {says}", flush=True)
        began = time.monotonic()
        command = [options.program.resolve(), "canary", *shlex.split(arguments), "--fresh"]
        ran = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(f"{ran.stdout}exit code {ran.returncode}, {time.monotonic() - began:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
