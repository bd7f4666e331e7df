#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one chart of a report as a picture of its own.

    tools/docs/report_figure.py demo/report.html "Step time over the run, slow rail" docs/step-curve.svg

The report's charts take their colours and fonts from the report's style sheet, so the picture contains the styles that
it needs. Its background is white, because a page that shows it may be dark. Exit code 2: the report cannot be read, or
it has no chart with that caption; then its captions are listed.
"""
import html
import pathlib
import re
import sys

FIGURE = re.compile(r"<figure><figcaption>(.*?)</figcaption>(<svg viewBox=\"0 0 ([\d.]+) ([\d.]+)\".*?</svg>)</figure>", re.S)
STYLE = ("text{fill:#222;font:11px system-ui,sans-serif}.axis{stroke:#ccc;stroke-width:1}"
         "polyline{fill:none;stroke-width:2}.title{font-weight:600;font-size:13px}")
TITLE_HEIGHT, MARGIN = 22, 8


def picture(caption, svg, width, height):
    """Returns the chart and its caption as an SVG file."""
    inner = svg.replace("<svg ", f'<svg x="{MARGIN}" y="{TITLE_HEIGHT}" width="{width:g}" height="{height:g}" ', 1)
    whole = (width + 2 * MARGIN, height + TITLE_HEIGHT + MARGIN)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]:g} {whole[1]:g}" role="img" '
            f'aria-label="{caption}"><style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
            f'<text class="title" x="{MARGIN}" y="15">{caption}</text>{inner}</svg>\n')


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    report, wanted, output = sys.argv[1:]
    try:
        figures = {match[1]: match for match in FIGURE.finditer(pathlib.Path(report).read_text())}
    except OSError as error:
        sys.stderr.write(f"error: {report} cannot be read: {error.strerror}\n")
        sys.exit(2)
    found = figures.get(html.escape(wanted))
    if found is None:
        captions = "\n  ".join(html.unescape(each) for each in figures) or "none"
        sys.stderr.write(f"error: {report} has no chart \"{wanted}\"\n  hint: it has\n  {captions}\n")
        sys.exit(2)
    pathlib.Path(output).write_text(picture(found[1], found[2], float(found[3]), float(found[4])))


if __name__ == "__main__":
    main()
