#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links between pages lead somewhere: the file exists, the heading too, and every page below docs can be reached from docs/README.md."""
import pathlib
import posixpath
import re

from source_files import ROOT, read, report, tracked

FENCED = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)
START = pathlib.PurePosixPath("docs/README.md")


def anchor(heading):
    """The name that GitHub gives a heading: lower case, without marks, blanks as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def links_of(page):
    """(line, target) of each link to a file or heading of the project."""
    text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), read(page))
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if not re.match(r"[a-z]+:", target):
                yield number, target


def resolve(page, target):
    """(path, heading or None) that a link of `page` names."""
    name, _, heading = target.partition("#")
    path = pathlib.PurePosixPath(posixpath.normpath(str(page.parent / name))) if name else page
    return path, heading or None


def main():
    pages = tracked(".md")
    anchors = {page: {anchor(match) for match in HEADING.findall(read(page))} for page in pages}
    violations, count, leads_to = [], 0, {}
    for page in pages:
        for number, target in links_of(page):
            count += 1
            path, heading = resolve(page, target)
            leads_to.setdefault(page, set()).add(path)
            if not (ROOT / path).exists():
                violations.append(f"{page}:{number}: {target}: there is no {path}")
            elif heading and path in anchors and heading not in anchors[path]:
                violations.append(f"{page}:{number}: {target}: {path} has no such heading")
    reached, new = set(), {START}
    while new:
        reached |= new
        new = {path for page in new for path in leads_to.get(page, ())} - reached
    violations += [f"{page}: no page leads here from {START}" for page in pages if page.parts[0] == "docs" and page not in reached]
    report("links", f"{count} links in {len(pages)} pages", violations)


if __name__ == "__main__":
    main()
