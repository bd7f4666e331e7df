#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cheap commands of pages, and compares their output with what the pages show.

  compare_outputs.py [--releases] PAGE-OR-PICTURE...

A block that begins with ```console same contains commands, each on a line after "$ ", and below each command its exact
output. A line "..." stands for any number of lines. After "same", these words may follow:
  part                       the output may have other lines before, between and after those of the block
  exit="1"                   the commands end with this exit code
  releases="2.24.3 2.28.9"   the commands run these releases of NCCL
Blocks with releases are compared only with --releases, all other blocks only without it. Exit code 77: nothing
differs, but a release is not in the user's cache.

A picture was drawn by tools/docs/terminal_picture.py and shows one command. The commands run in a folder with the
tree's docs, tests and traces, for COMMAND_SECONDS at most, or for RELEASES_SECONDS with releases. DYNAMICCL_BIN is the
program. Its folder is on PATH.
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
RELEASES_SECONDS = 230
SKIPPED = 77
DRAWN = re.compile(r'<text class="terminal-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
LINE_HEIGHT = re.compile(r"line-height:([\d.]+)px")
BLOCK = re.compile(r'^```console same( part)?(?: exit="(\d+)")?(?: releases="([\d. ]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def drawn_lines(picture):
    """Returns the lines in a picture of a terminal. The words of a line have the same y; a blank line has no words."""
    rows = {}
    for x, y, words in DRAWN.findall(picture):
        rows.setdefault(float(y), []).append((float(x), html.unescape(words).replace("\xa0", " ")))
    height = float(LINE_HEIGHT.search(picture)[1])
    lines = [""] * (1 + round((max(rows) - min(rows)) / height)) if rows else []
    for y, words in rows.items():
        lines[round((y - min(rows)) / height)] = "".join(text for _, text in sorted(words))
    return lines


def commands_of(page, with_releases):
    """Yields (line, command, expected lines, exit code, releases) for each command that the page shows."""
    text = page.read_text()
    if page.suffix == ".svg":
        text = "\n".join(["```console same", *drawn_lines(text), "```\n"])
    for block in BLOCK.finditer(text):
        code, releases = int(block[2] or 0), (block[3] or "").split()
        fill = (lambda lines: [text for line in lines for text in ("...", line)] + ["..."]) if block[1] else list
        if bool(releases) != with_releases:
            continue
        line = text.count("\n", 0, block.start()) + 1
        command, expected, begun = None, [], 0
        for offset, row in enumerate(block[4].splitlines(), 1):
            if not row.startswith("$ "):
                expected.append(row)
                continue
            if command:
                yield begun, command, fill(expected), code, releases
            command, expected, begun = row[2:], [], line + offset
        if command:
            yield begun, command, fill(expected), code, releases


def is_same(expected, printed):
    """Returns whether the lines are equal, if "..." in `expected` stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in printed)) is not None


def missing_release(releases):
    """Returns the first of the releases that is not in the user's cache, or None."""
    wheels = user_cache() / "dynamiccl/wheels"
    return next((release for release in releases if not (wheels / f"nccl-{release}").exists()), None)


def user_cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")


def prepare(folder):
    """Gives the commands folders of the tree and their own home, whose cache has the user's releases of NCCL."""
    cache = pathlib.Path(folder, "home/.cache/dynamiccl")
    cache.mkdir(parents=True)
    (cache / "wheels").symlink_to(user_cache() / "dynamiccl/wheels")
    for name in ("docs", "tests", "traces"):
        os.symlink(ROOT / name, f"{folder}/{name}")


def check_page(page, with_releases):
    """Returns the number of commands whose output differs from the page, and the number of skipped commands."""
    commands = list(commands_of(page, with_releases))
    wrong, skipped = 0 if commands else 1, 0
    if not commands:
        print(f"{page}: no command to compare", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        for line, command, expected, code, releases in commands:
            if missing := missing_release(releases):
                print(f"{page.name}: skipped: no NCCL {missing} in the cache; run: tools/setup/fetch_nccl.sh {missing}")
                skipped += 1
                continue
            seconds = RELEASES_SECONDS if releases else COMMAND_SECONDS
            script = f"set -euo pipefail\nexec timeout {seconds} bash -euc {shlex.quote(command)}"
            output, ended = run_block(script, folder, environment(f"{folder}/home"))
            printed = output.splitlines()
            if ended == f"exit code {code}" and is_same(expected, printed):
                continue
            wrong += 1
            print(f"{page}:{line}: {command}\n  {ended}; the page's lines (-) and what was printed (+):", file=sys.stderr)
            print("\n".join(difflib.unified_diff(expected, printed, lineterm="", n=1)), file=sys.stderr)
    print(f"{page.name}: {len(commands)} commands, {wrong} differ, {skipped} skipped")
    return wrong, skipped


def main():
    with_releases = "--releases" in sys.argv
    pages = [pathlib.Path(word) for word in sys.argv[1:] if word != "--releases"]
    if not pages:
        print(__doc__, file=sys.stderr)
        return 2
    checked = [check_page(page, with_releases) for page in pages]
    if any(wrong for wrong, _ in checked):
        return 1
    return SKIPPED if any(skipped for _, skipped in checked) else 0


if __name__ == "__main__":
    sys.exit(main())
