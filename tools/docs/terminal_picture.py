#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command and draws its output as a terminal window, into an SVG that loads no other files.

    tools/docs/python.sh tools/docs/terminal_picture.py docs/why.svg dynamiccl why traces/samples/ddp_resnet_device.pt.trace.json.gz

Run it in the folder to which the command's paths are relative, with dynamiccl's folder on PATH.
tests/docs/compare_outputs.py compares the picture's text with the command's output. Exit code 2: the command line is
wrong, or the command failed.
"""
import html
import os
import pathlib
import shlex
import subprocess
import sys

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

COLUMNS = 100  # as wide as `dynamiccl why` writes
# Replaces the frame of the library Rich, which loads a font from the web. Rich sets textLength, which keeps columns
# aligned with any font.
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>.{unique_id}-matrix{{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;\
font-size:{char_height}px;line-height:{line_height}px}}.{unique_id}-title{{font:18px system-ui,sans-serif}}{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}<g transform="translate({terminal_x},{terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}\
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def printed(command):
    """What the command writes to standard output. Its failure ends the program."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode:
        sys.stderr.write(f"error: {shlex.join(command)} ended with {done.returncode}\n  hint: {done.stderr}")
        sys.exit(2)
    return done.stdout.rstrip("\n")


def main():
    if len(sys.argv) < 3:
        sys.stderr.write(__doc__)
        sys.exit(2)
    picture, *command = sys.argv[1:]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(width=COLUMNS, record=True, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.assemble(("$ ", "green"), (shlex.join(command), "bold")), soft_wrap=True)
        console.print(Text(printed(command)), soft_wrap=True)
    drawn = console.export_svg(title="dynamiccl", theme=SVG_EXPORT_THEME, code_format=FRAME, unique_id="terminal")
    label = html.escape(f"What {shlex.join(command)} prints")
    pathlib.Path(picture).write_text(drawn.replace('role="img"', f'role="img" aria-label="{label}"', 1), encoding="utf-8")


if __name__ == "__main__":
    main()
