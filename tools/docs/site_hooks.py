# SPDX-License-Identifier: Apache-2.0
"""Adapts pages to the site's generator. The pages are written for readers of the repository."""
import re

LINK = re.compile(r"(?<!!)\[([^]]+)]\(([^)\s]+)\)")
LIST_OR_TABLE = re.compile(r"(?:[*-] |\d+\. |\|)")
BLOCK_LINE = re.compile(r"(?:\s|[*-] |\d+\. |\||#|>|$)")


def _without_outside_links(text, page):
    """Replaces links to files that are not pages of the site (code, READMEs of folders) by their text."""

    def keep(match):
        words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match.group(0)
        path, depth = target.split("#")[0], page.file.src_uri.count("/")
        outside = path.count("../") > depth or not path.endswith((".md", ".png"))
        return words if outside else match.group(0)

    return LINK.sub(keep, text)


def _with_blank_lines(text):
    """Adds the blank line that the generator needs between a paragraph and a list or table."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if not fenced and lines and LIST_OR_TABLE.match(line) and not BLOCK_LINE.match(lines[-1]):
            lines.append("")
        lines.append(re.sub(r"^```(\w+) .*", r"```\1", line))
    return "\n".join(lines)


def on_page_markdown(markdown, page, **_):
    return _with_blank_lines(_without_outside_links(markdown, page))


# Quiet text, links in code, numbers and constants of the theme have slightly less contrast than the 4.5 : 1 of WCAG (see
# site_widths.py). These colours are the theme's own, a little darker or lighter.
CONTRAST = """<style>
[data-md-color-scheme="default"] { --md-default-fg-color--light: rgba(0, 0, 0, 0.62); }
[data-md-color-scheme="slate"][data-md-color-primary] {
  --md-default-fg-color--light: hsla(225, 15%, 90%, 0.66); --md-typeset-a-color: #7ba4f0;
  --md-code-hl-number-color: #ea7d71; --md-code-hl-constant-color: #a698ea; }
</style>"""


def on_post_page(output, **_):
    return output.replace("</head>", CONTRAST + "</head>", 1)
