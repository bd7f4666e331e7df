#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws comments and paragraphs at random, for somebody who reads them once and says which he did not understand.

    tools/docs/draw_text.py --seed 31 --comments 40 --paragraphs 20

Comments come from the C++ and Python files of FOLDERS, paragraphs from docs. A comment is a run of whole-line comments
or a docstring; licence lines and comments of fewer than four words are left out, and so are tables and code of pages.
Tests are left out: their names say most. The same seed on the same commit draws the same texts.
"""
import argparse
import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("plugin", "src", "traces", "zero_workloads", "agents", "tools")
FEWEST_WORDS = 4
COMMENT_LINES = {".cc": "//", ".h": "//", ".cu": "//", ".py": "#"}
DOCSTRING = re.compile(r'^ *"""(.*?)"""', re.DOTALL | re.MULTILINE)


def tracked(*folders):
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", *folders], check=True, capture_output=True, text=True)
    return sorted(listed.stdout.splitlines())


def comments_of(name):
    """Yields the line and text of each comment of a file, with the line of code that follows the comment."""
    path = ROOT / name
    mark = COMMENT_LINES.get(path.suffix)
    if not mark:
        return
    text = path.read_text()
    run, begun = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith(mark) and "SPDX" not in stripped and not stripped.startswith("#!"):
            begun = begun if run else number
            run.append(stripped.lstrip(mark).strip())
            continue
        if run and len(" ".join(run).split()) >= FEWEST_WORDS:
            yield begun, "\n".join(run) + f"\n    | {stripped}"
        run = []
    if path.suffix == ".py":
        for found in DOCSTRING.finditer(text):
            if len(found[1].split()) >= FEWEST_WORDS:
                yield text.count("\n", 0, found.start()) + 1, found[1].strip()


def paragraphs_of(name):
    """Yields the line and text of each paragraph of a page. Code, tables, headings and pictures are no paragraphs."""
    text = re.sub(r"^```.*?^```$", lambda code: "\n" * code[0].count("\n"), (ROOT / name).read_text(),
                  flags=re.DOTALL | re.MULTILINE)
    for found in re.finditer(r"(?:^.*\S.*\n?)+", text, re.MULTILINE):
        if found[0][0] in "|#!" or found[0].startswith("    ") or len(found[0].split()) < 2 * FEWEST_WORDS:
            continue
        yield text.count("\n", 0, found.start()) + 1, found[0].strip()


def show(kind, texts, count, seed):
    drawn = random.Random(seed).sample(texts, min(count, len(texts)))
    print(f"{len(drawn)} of {len(texts)} {kind}, seed {seed}\n")
    for name, line, text in sorted(drawn):
        print(f"{name}:{line}\n    " + text.replace("\n", "\n    ") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--comments", type=int, default=40)
    parser.add_argument("--paragraphs", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=FOLDERS, help="draw comments from these folders alone")
    options = parser.parse_args()
    comments = [(name, line, text) for name in tracked(*options.only) for line, text in comments_of(name)]
    pages = [(name, line, text) for name in tracked("docs/*.md") for line, text in paragraphs_of(name)]
    show("comments", comments, options.comments, options.seed)
    show("paragraphs", pages, options.paragraphs, options.seed)


if __name__ == "__main__":
    main()
