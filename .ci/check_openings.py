#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A page of docs/results begins with its finding in at most three lines. The page's picture, if it has one, comes next."""
from source_files import read, report, tracked

MAX_LINES, MAX_COLUMNS = 3, 120


def faults(lines):
    """Yields the line of each fault and what to do about it."""
    end = next((number for number in range(2, len(lines)) if not lines[number]), len(lines))
    if lines[1:2] != [""] or end == 2 or lines[2].startswith(("|", "!", "```", "#", "* ")):
        yield 3, "write the finding here as a paragraph, below the title and an empty line"
    if end > 2 + MAX_LINES:
        yield 3 + MAX_LINES, f"shorten the opening of {end - 2} lines to {MAX_LINES}, and move the rest below the picture or into the next paragraph"
    yield from ((number + 1, f"wrap this line at {MAX_COLUMNS} columns") for number in range(2, end) if len(lines[number]) > MAX_COLUMNS)
    picture = next((number for number, line in enumerate(lines) if "](pictures/" in line), end + 1)
    if picture != end + 1:
        yield picture + 1, f"move this picture to line {end + 2}, below the finding"


pages = [page for page in tracked(".md") if page.parts[:2] == ("docs", "results")]
violations = [f"{page}:{line}: {what}" for page in pages for line, what in faults(read(page).split("\n"))]
report("openings", f"{len(pages)} pages of docs/results", violations)
