#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/commands.md from the help texts of the commands.

    tools/docs/command_reference.py build/release/bin/dynamiccl            rewrites the page
    tools/docs/command_reference.py --check build/release/bin/dynamiccl    exit code 1 where the page is not what help says

Some commands pass options to dynamiccl-agents or dynamiccl-zero. The page lists these options too, so rewrite it with a
build that has LibTorch. --check leaves these options out if the build does not have the two programs.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/commands.md"
HEAD = """# Commands and their options

This page is what `dynamiccl COMMAND --help` says of each command, written by `tools/docs/command_reference.py`. The
[tour](tour.md) shows what the commands print; installed packages have the same as manual pages (`man dynamiccl-why`).
"""
ROW = re.compile(r"^  ([a-z][a-z-]*) +[A-Z]", re.M)
SIBLING_OPTIONS = re.compile(r"\n*Options of dynamiccl-(?:agents|zero):\n.*?(?=\n```)", re.S)


def help_of(program, *words):
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True, env={**os.environ, "NO_COLOR": "1"})
    return done.stdout.strip("\n")


def section(depth, words, text):
    return f"\n{'#' * depth} {' '.join(words)}\n\n```\n{text}\n```\n"


def page(program):
    """The whole page: all commands, and under each its subcommands."""
    parts = [HEAD]
    for command in ROW.findall(help_of(program)):
        text = help_of(program, command)
        parts.append(section(2, (command,), text))
        _, _, actions = text.partition("\nSubcommands:\n")
        parts += [section(3, (command, action), help_of(program, command, action)) for action in ROW.findall(actions)]
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("program", type=pathlib.Path, help="the program dynamiccl of a build")
    options = parser.parse_args()
    said = page(options.program)
    whole = all((options.program.parent / name).exists() for name in ("dynamiccl-agents", "dynamiccl-zero"))
    if not options.check:
        if not whole:
            sys.exit("this build has no dynamiccl-agents or no dynamiccl-zero, whose options the page holds: "
                     "build with -DDYNAMICCL_BUILD_TORCH=ON")
        PAGE.write_text(said, encoding="utf-8")
        return 0
    stands = PAGE.read_text(encoding="utf-8")
    if not whole:
        said, stands = SIBLING_OPTIONS.sub("", said), SIBLING_OPTIONS.sub("", stands)
    differences = list(difflib.unified_diff(stands.splitlines(), said.splitlines(), "docs/commands.md", "help", lineterm="", n=1))
    print("\n".join(differences) if differences else "docs/commands.md is what help says")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
