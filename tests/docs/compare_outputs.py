#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cheap commands of pages and compares what they print with what the pages say.

  compare_outputs.py PAGE-OR-PICTURE...

A block that begins with ```console same has commands, each on a line after "$ ", and under each what it prints, to the letter. A line
"..." stands for any lines. A picture is one that tools/docs/terminal_picture.py drew, with one command. The commands see docs, tests and traces of the tree in the folder that they run in, and take
COMMAND_SECONDS at most. DYNAMICCL_BIN is the program; the folder it lies in is on PATH.
"""
import difflib
import html
import os
import pathlib
import re
import shlex
import sys
import tempfile

from run_documents import ROOT, environment, run_block

COMMAND_SECONDS = 60
DRAWN = re.compile(r'<text class="terminal-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
LINE_HEIGHT = re.compile(r"line-height:([\d.]+)px")
BLOCK = re.compile(r"^```console same\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def drawn_lines(picture):
    """The lines of text that the picture of a terminal shows; words of one line have the same y, blank lines have no word."""
    rows = {}
    for x, y, words in DRAWN.findall(picture):
        rows.setdefault(float(y), []).append((float(x), html.unescape(words).replace("\xa0", " ")))
    height = float(LINE_HEIGHT.search(picture)[1])
    lines = [""] * (1 + round((max(rows) - min(rows)) / height)) if rows else []
    for y, words in rows.items():
        lines[round((y - min(rows)) / height)] = "".join(text for _, text in sorted(words))
    return lines


def commands_of(page):
    """(line, command, expected lines) of all commands that the page shows with what they print."""
    text = page.read_text()
    if page.suffix == ".svg":
        text = "\n".join(["```console same", *drawn_lines(text), "```\n"])
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
