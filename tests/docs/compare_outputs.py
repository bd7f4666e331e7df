#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cheap commands of pages and compares what they print with what the pages say.

  compare_outputs.py PAGE...

A block that begins with ```console same has commands, each on a line after "$ ", and under each what it prints, to the letter. A line
"..." stands for any lines. The commands see docs, tests and traces of the tree in the folder that they run in, and take
COMMAND_SECONDS at most. DYNAMICCL_BIN is the program; the folder it lies in is on PATH.
"""
import difflib
import os
import pathlib
import re
import shlex
import sys
import tempfile

from run_documents import ROOT, environment, run_block

COMMAND_SECONDS = 60
BLOCK = re.compile(r"^```console same\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(page):
    """(line, command, expected lines) of all commands that the page shows with what they print."""
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        command, expected, begun = None, [], 0
        for offset, row in enumerate(block.group(1).splitlines(), 1):
            if not row.startswith("$ "):
                expected.append(row)
                continue
            if command:
                yield begun, command, expected
            command, expected, begun = row[2:], [], line + offset
        if command:
            yield begun, command, expected


def is_same(expected, printed):
    """Whether the lines are equal where "..." among the expected ones stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in printed)) is not None


def check_page(page):
    """The number of commands that print something else than the page says."""
    commands = list(commands_of(page))
    wrong = 0 if commands else 1
    if not commands:
        print(f"{page}: no command to compare", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/home")
        for name in ("docs", "tests", "traces"):
            os.symlink(ROOT / name, f"{folder}/{name}")
        for line, command, expected in commands:
            script = f"set -euo pipefail\nexec timeout {COMMAND_SECONDS} bash -euc {shlex.quote(command)}"
            output, ended = run_block(script, folder, environment(f"{folder}/home"))
            printed = output.splitlines()
            if ended == "exit code 0" and is_same(expected, printed):
                continue
            wrong += 1
            print(f"{page}:{line}: {command}\n  {ended}; the page's lines (-) and what was printed (+):", file=sys.stderr)
            print("\n".join(difflib.unified_diff(expected, printed, lineterm="", n=1)), file=sys.stderr)
    print(f"{page.name}: {len(commands)} commands, {wrong} differ")
    return wrong


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if sum(check_page(pathlib.Path(page)) for page in sys.argv[1:]) else 0


if __name__ == "__main__":
    sys.exit(main())
