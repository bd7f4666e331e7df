#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws tables of docs/results as pictures: docs/results/pictures/NAME.svg.

    tools/docs/draw_tables.py            rewrites every picture
    tools/docs/draw_tables.py --check    names each picture that is not what its page gives; exit code 1 if there is one

Every mark of a picture is read from the page's table, and its title is the text of the page's own link to it, so a
picture cannot disagree with its page. PICTURES at the end of this file says which table a picture shows, and how. A
page whose table is a list of verdicts has no picture and stands in LISTS; --check names each page that is in neither.
"""
import argparse
import dataclasses
import html
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: colour-blind safe
WIDTH, FONT, TITLE_FONT = 560, 14, 16  # user units; a phone that shows 360 pixels makes a letter of 14 about 9 pixels high
LETTER = 0.55                          # mean width of a sans-serif letter as a share of the font size
NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
INTERVAL = re.compile(r"([-+]?\d[\d.]*) to ([-+]?\d[\d.]*)")


@dataclasses.dataclass
class Series:
    """A column of the table that is drawn. All its marks have the same colour and shape."""
    column: str         # the column's name, or the beginning of it
    label: str = ""     # in the legend; the column's name without it
    index: int = 0      # which number of the cell: 1 is the second of "0.739, 0.627"
    interval: str = ""  # the column that holds the interval, where the cell does not


@dataclasses.dataclass
class Picture:
    name: str
    page: str
    series: list
    axis: str                  # what the numbers are, with their unit
    under: str = ""            # the heading that the table stands below, or its beginning; without it the page's first table
    labels: tuple = (0,)       # the columns that name a row
    rows: str = ""             # a regular expression that a row's name must match
    sentences: str = ""        # in place of a table: a regular expression whose groups are a row's name and its numbers
    bars: bool = False         # bars from zero; without it dots
    reference: float = None    # where the dashed line is
    reference_label: str = ""
    logarithmic: bool = False


@dataclasses.dataclass
class Mark:
    value: float
    said: str  # the number as the page has it
    low: float = None
    high: float = None


class PictureError(Exception):
    """The page lacks the table, the column or the link of a picture."""


def cells_of(line):
    """Returns the cells of a line of a Markdown table, without the marks of emphasis and code."""
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [re.sub(r"\*\*|`", "", cell).replace("\\|", "|").strip() for cell in cells]


def aligned_cells(line, columns):
    """Returns the cells of a line of a printed table, in which two or more blanks separate columns. A line may lack the
    name in front."""
    cells = re.split(r" {2,}", line.strip())
    return [""] * (columns - len(cells)) + cells


def table_lines(lines, start):
    """Returns the lines of the first table from line `start` on, and whether it is a Markdown table or a table in a
    code block."""
    fenced = False
    for number in range(start, len(lines)):
        fenced ^= lines[number].startswith("```")
        if not fenced and lines[number].startswith("|"):
            end = next((each for each in range(number, len(lines)) if not lines[each].startswith("|")), len(lines))
            return lines[number:end], True
        if fenced and lines[number].startswith("   ") and len(re.split(r" {2,}", lines[number].strip())) > 2:
            end = next(each for each in range(number, len(lines)) if lines[each].startswith("```"))
            return lines[number:end], False
    return [], True


def read_table(text, under=""):
    """Returns the names of the columns and the rows of cells of the first table of the page, or of the first below the
    heading `under`."""
    lines, start = text.splitlines(), 0
    if under:
        headings = [number for number, line in enumerate(lines) if re.match(r"#+ " + re.escape(under), line)]
        if not headings:
            raise PictureError(f"there is no heading '{under}'")
        start = headings[0]
    found, markdown = table_lines(lines, start)
    if not found:
        raise PictureError(f"there is no table below '{under or 'the title'}'")
    if markdown:
        return cells_of(found[0]), [cells_of(line) for line in found[2:]]
    columns = max(len(re.split(r" {2,}", line.strip())) for line in found)
    return aligned_cells(found[0], columns), [aligned_cells(line, columns) for line in found[1:]]


def number_of(text):
    return float(text.replace(",", ""))


def mark_of(cell, index=0, interval_cell=None):
    """Returns the mark to draw for the number of a table's cell; None for an empty cell. The mark has an interval if the
    cell states one in parentheses, or if `interval_cell`, the cell of a column of intervals, does."""
    before, bracket, behind = cell.partition("(")
    numbers = NUMBER.findall(before)
    if index >= len(numbers):
        return None
    mark = Mark(number_of(numbers[index]), numbers[index])
    stated = behind if bracket else ""
    if interval_cell is not None:
        stated = interval_cell
    elif index != len(numbers) - 1:
        stated = ""  # an interval belongs to the number that stands before it
    interval = INTERVAL.match(stated)
    if interval:
        mark.low, mark.high = (number_of(bound) for bound in interval.groups())
    return mark


def read_sentences(text, pattern, series):
    """Returns the names of the columns and the rows of cells of a page that states each row as a sentence."""
    rows = [list(found.groups()) for found in re.finditer(pattern, text)]
    if not rows:
        raise PictureError(f"no sentence matches '{pattern}'")
    return ["", *(each.column for each in series)], rows


def column_of(names, wanted):
    for number, name in enumerate(names):
        if name == wanted:
            return number
    for number, name in enumerate(names):
        if name.startswith(wanted):
            return number
    raise PictureError(f"the table has no column '{wanted}'; it has {', '.join(names)}")


def marks_of(picture, text):
    """Returns a heading for the rows' names, and for each row that the picture shows its name and the mark of each
    series (or None)."""
    names, rows = read_sentences(text, picture.sentences, picture.series) if picture.sentences else read_table(text, picture.under)
    columns = [(column_of(names, each.column), column_of(names, each.interval) if each.interval else None, each.index)
               for each in picture.series]
    shown = []
    for row in rows:
        name = ", ".join(row[column] for column in picture.labels if row[column])
        if picture.rows and not re.search(picture.rows, name):
            continue
        marks = [mark_of(row[column], index, None if interval is None else row[interval]) for column, interval, index in columns]
        if any(marks):
            shown.append((name, marks))
    if not shown:
        raise PictureError("no row of the table has a number")
    return ", ".join(names[column] for column in picture.labels if names[column] not in ("", "what", "who")), shown


def title_of(picture, text):
    """Returns the picture's title, which is the text of the page's link to the picture."""
    found = re.search(r"!\[([^\]]+)\]\(pictures/" + re.escape(picture.name) + r"\.svg\)", text)
    if not found:
        raise PictureError(f"the page does not show pictures/{picture.name}.svg")
    return " ".join(found[1].split())


def wrapped(text, width, font):
    """Breaks a text into lines that are at most `width` wide."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and len(longer) * LETTER * font > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def round_steps(low, high, most=7):
    """Returns round numbers between `low` and `high`, at most `most` of them."""
    rough = (high - low) / (most - 1) or 1
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * each, 10) for each in range(first, last + 1)]


class Axis:
    """Maps numbers to horizontal positions in the picture."""

    def __init__(self, picture, marks, left, right):
        bounds = [bound for _, row in marks for mark in row if mark for bound in (mark.value, mark.low, mark.high) if bound is not None]
        bounds += [picture.reference] if picture.reference is not None else []
        bounds += [0] if picture.bars else []
        self.left, self.right, self.logarithmic = left, right, picture.logarithmic
        low, high = min(bounds), max(bounds)
        if self.logarithmic:
            self.low, self.high = math.log10(low / 1.15), math.log10(high * 1.15)
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            every = (1, 2, 5) if self.high - self.low < 2.5 else (1,)
            self.ticks = [factor * 10.0 ** decade for decade in decades for factor in every]
            self.ticks = [tick for tick in self.ticks if low / 1.15 <= tick <= high * 1.15]
        else:
            margin = (high - low) * 0.04 or 1
            self.low = low if picture.bars and low == 0 else low - margin
            self.high = high + margin
            self.ticks = round_steps(self.low, self.high)

    def at(self, value):
        value = math.log10(value) if self.logarithmic else value
        return self.left + (self.right - self.left) * (value - self.low) / (self.high - self.low)


def text_at(x, y, text, anchor="start", font=FONT, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{font}" text-anchor="{anchor}"{extra}>{html.escape(text)}</text>'


def shape_at(x, y, shape, series):
    """Draws a mark. Both its colour and its shape tell the series; bars all have the same shape."""
    colour = COLOURS[series % len(COLOURS)]
    corners = ("", "-5 -5 5 -5 5 5 -5 5", "0 -6 6 0 0 6 -6 0", "0 -6 6 5 -6 5", "0 6 6 -5 -6 -5", "-2 -6 2 -6 2 6 -2 6")[shape % 6]
    if not corners:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
    return f'<polygon transform="translate({x:.1f} {y:.1f})" points="{corners}" fill="{colour}"/>'


def mark_at(picture, axis, mark, series, y):
    """Draws a dot or a bar with its error bar, at the height `y`."""
    colour, x, drawn = COLOURS[series % len(COLOURS)], axis.at(mark.value), []
    if picture.bars:
        zero = axis.at(0)
        drawn.append(f'<rect x="{min(zero, x):.1f}" y="{y - 6:.1f}" width="{max(abs(x - zero), 1):.1f}" height="12" fill="{colour}"/>')
        beyond = x if mark.high is None else axis.at(max(mark.value, mark.high))
        drawn.append(text_at(max(beyond, zero) + 4, y + 4.5, mark.said, font=13))
    if mark.low is not None:
        low, high = axis.at(mark.low), axis.at(mark.high)
        drawn.append(f'<path d="M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 4:.1f}v8M{high:.1f} {y - 4:.1f}v8" '
                     f'stroke="{"#333" if picture.bars else colour}" stroke-width="1.6" fill="none"/>')
    return drawn if picture.bars else drawn + [shape_at(x, y, series, series)]


def legend(picture, y):
    """Returns the elements of the legend and the y below them. A picture with one series has no legend."""
    drawn, x = [], 16
    if len(picture.series) == 1:
        return drawn, y
    for number, series in enumerate(picture.series):
        label = series.label or series.column
        width = 20 + len(label) * LETTER * FONT + 18
        if x + width > WIDTH and x > 16:
            x, y = 16, y + 20
        drawn += [shape_at(x + 6, y - 5, 1 if picture.bars else number, number), text_at(x + 18, y, label)]
        x += width
    return drawn, y + 22


def grid(picture, axis, top, bottom):
    """Draws the lines and numbers of the axis, its name, and the reference line."""
    drawn = []
    for tick in axis.ticks:
        x = axis.at(tick)
        drawn += [f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="#ddd"/>', text_at(x, bottom + 18, f"{tick:,g}", "middle", 13)]
    if picture.bars:
        drawn.append(f'<path d="M{axis.at(0):.1f} {top:.1f}V{bottom:.1f}" stroke="#888"/>')
    if picture.reference is not None:
        x = axis.at(picture.reference)
        drawn.append(f'<path d="M{x:.1f} {top - 4:.1f}V{bottom:.1f}" stroke="#000" stroke-width="1.5" stroke-dasharray="5 4"/>')
    y = bottom + 40
    for line in wrapped(picture.axis, WIDTH - 32, FONT):
        drawn.append(text_at(WIDTH / 2, y, line, "middle"))
        y += 18
    if picture.reference_label:
        for line in wrapped(f"Dashed line: {picture.reference_label}.", WIDTH - 32, FONT):
            drawn.append(text_at(WIDTH / 2, y, line, "middle"))
            y += 18
    return drawn, y


def rows_below(picture, marks, heading, top):
    """Returns the elements of all rows, each with its name and its marks, and the y below them."""
    longest = max(len(name) for name, _ in marks) * LETTER * FONT
    names = min(max(longest, 60), 220)
    last = 60 if picture.bars else 16  # a bar's number stands to its right
    axis = Axis(picture, marks, names + 28, WIDTH - last)
    drawn, y, pitch = [text_at(16, top, heading, font=13, extra=' fill="#555"')], top + 6, 15 if picture.bars else 14
    for number, (name, row) in enumerate(marks):
        lines = wrapped(name, names, FONT)
        height = max(len(row) * pitch, len(lines) * 16) + (8 if len(row) > 1 else 5)
        if number % 2:
            drawn.append(f'<rect x="8" y="{y:.1f}" width="{WIDTH - 16}" height="{height}" fill="#f3f3f3"/>')
        begin = y + (height - 16 * len(lines)) / 2 + 12
        drawn += [text_at(16, begin + 16 * each, line) for each, line in enumerate(lines)]
        for series, mark in enumerate(row):
            if mark:
                drawn += mark_at(picture, axis, mark, series, y + (height - pitch * len(row)) / 2 + pitch * (series + 0.5))
        y += height
    below, end = grid(picture, axis, top + 6, y)
    stripes = [each for each in drawn if 'fill="#f3f3f3"' in each]
    return stripes + below + [each for each in drawn if each not in stripes], end


def description_of(picture, marks):
    """Returns the picture's numbers as a text, for people who cannot see the picture."""
    labels = [series.label or series.column for series in picture.series]
    said = []
    for name, row in marks:
        values = [f"{label} {mark.said}" + (f" ({mark.low:g} to {mark.high:g})" if mark.low is not None else "")
                  for label, mark in zip(labels, row) if mark]
        said.append(f"{name}: {', '.join(values)}")
    return f"{picture.axis}. {'; '.join(said)}."


def draw(picture, text):
    """Returns the picture as SVG, drawn from the text of its page."""
    (heading, marks), title = marks_of(picture, text), title_of(picture, text)
    drawn, y = [], 30
    for line in wrapped(title, WIDTH - 32, TITLE_FONT * 1.13):
        drawn.append(text_at(16, y, line, font=TITLE_FONT, extra=' font-weight="bold"'))
        y += 21
    keys, y = legend(picture, y + 4)
    rows, y = rows_below(picture, marks, heading, y + (2 if heading else -10))
    height = y + 2
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
            f'aria-labelledby="title desc" font-family="Helvetica, Arial, sans-serif" fill="#111">\n'
            f"<!-- tools/docs/draw_tables.py drew this from docs/results/{picture.page}.md -->\n"
            f'<title id="title">{html.escape(title)}</title>\n<desc id="desc">{html.escape(description_of(picture, marks))}</desc>\n'
            f'<rect x="1" y="1" width="{WIDTH - 2}" height="{height - 2:.0f}" rx="12" fill="#fff" stroke="#ccc"/>\n')
    return head + "\n".join(drawn + keys + rows) + "\n</svg>\n"


def drawn_pictures(pictures, results):
    """Returns the SVG of each picture by its path, and the errors of pictures that could not be drawn."""
    drawn, faults = {}, []
    for picture in pictures:
        try:
            text = (results / f"{picture.page}.md").read_text(encoding="utf-8")
            drawn[results / "pictures" / f"{picture.name}.svg"] = draw(picture, text)
        except (PictureError, OSError) as fault:
            faults.append(f"docs/results/pictures/{picture.name}.svg: {picture.page}.md: {fault}")
    return drawn, faults


def check(drawn, folder):
    """Returns the files of the folder that differ from what is drawn, and the pictures that are missing there."""
    differing = [path for path, svg in drawn.items() if not path.exists() or path.read_text(encoding="utf-8") != svg]
    unknown = set(folder.glob("*.svg")) - set(drawn)
    return ([f"docs/results/pictures/{path.name}: is not what its page's table gives: run tools/docs/draw_tables.py" for path in differing]
            + [f"docs/results/pictures/{path.name}: no table is drawn into it: remove it" for path in sorted(unknown)])


def without_picture(pictures, lists, results):
    """Returns the pages of results that have no picture and are not in LISTS."""
    missing = {path.stem for path in results.glob("*.md")} - {picture.page for picture in pictures} - set(lists)
    return [f"docs/results/{name}.md: has no picture: add one to PICTURES, or the page to LISTS if its table is a list of verdicts"
            for name in sorted(missing)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a picture is not as its page")
    options = parser.parse_args()
    drawn, faults = drawn_pictures(PICTURES, RESULTS)
    if options.check:
        faults += check(drawn, RESULTS / "pictures") + without_picture(PICTURES, LISTS, RESULTS)
    else:
        for path, svg in drawn.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg, encoding="utf-8")
    for fault in faults:
        print(fault)
    print(f"pictures: {len(PICTURES)} pictures of docs/results: {f'{len(faults)} violations' if faults else 'ok'}")
    return 1 if faults else 0


PICTURES = [
    Picture("adaptive-steps", "adaptive-steps",
            [Series("starter", "mode adaptive with the starter, whole job"), Series("starter", "its last fifth", 1),
             Series("nothing known", "with nothing known, whole job"),
             Series("Ring/Simple/1", "one channel for all calls, last fifth", 1)],
            "step over the default's, median and (last fifths) least to most of the seeds", under="Eight kinds of jobs",
            reference=1, reference_label="the default's step; left of it is faster"),
    Picture("step-map", "step-map", [Series("ring/simple/1")],
            "step with Ring/Simple/1 for every call over the default's step, 95 % interval", under="Every fabric", rows=", (3|ddp|fsdp2)$",
            reference=1, reference_label="the default's step; left of it is faster"),
    Picture("guard", "guard", [Series("largest loss")],
            "largest loss of any job, % of the time with NCCL's choices; a row is what the job begins with, and its steps",
            under="By steps", labels=(0, 1), bars=True),
    Picture("tuned-step", "tuned-step", [Series("ours over default", "mode adaptive"), Series("calibrated", "calibrated default")],
            "step over the default's, median and 95 % interval", under="Sixteen times less", labels=(0, 1),
            reference=1, reference_label="the default's step; left of it is faster"),
    Picture("hostccl-map", "hostccl-map", [Series("default 1.1x", "default"), Series("calibrated 1.1x", "calibrated default")],
            "cells where the choice takes at least 1.1 times the best of the sweep, %, 2 ranks", under="Shares, 2 ranks", rows="nodes?|unshaped|all",
            bars=True),
    Picture("agents-config", "agents-config", [Series("regret")],
            "time over the best config of the sweep (regret), %, mean of 48 keys and 95 % interval", under="hostccl, 2 ranks: topologies that training never saw",
            reference=0, reference_label="the best of the sweep"),
    Picture("agents-timing", "agents-timing", [Series("recorded, held out", "recorded jobs"), Series("modelled, held out", "modelled noise")],
            "false alarms in 20,000 held-out calls, 95 % interval", under="False alarms in 20,000 calls",
            reference=1, reference_label="at most one was asked; left of it is better"),
    Picture("presence", "presence", [Series("first run", "added"), Series("bound")],
            "added to a call with warm caches, ns, median", under="Now", bars=True),
    Picture("gpu", "gpu", [Series("DDP over memory, first", "DDP, first lease"), Series("second lease", "DDP, second lease"),
                           Series("wide DDP", "wide DDP, H200"), Series("FSDP2 over memory, first", "FSDP2, first lease")],
            "step over that with NCCL's own channels, two ranks on one GPU, 95 % interval", under="The step of a PyTorch job", rows="^(?!NCCL|rounds)",
            reference=1, reference_label="NCCL's own choice; left of it is faster"),
    Picture("headroom", "headroom", [Series("gain of telling apart", "gain"), Series("noise %", "noise")],
            "gain of a choice for each value of the field over one choice for all, and the noise, %", under="What a field of the key adds",
            labels=(0, 1), bars=True),
    Picture("simulator", "simulator", [Series("fitted"), Series("formulas alone"), Series("line in ranks", "line through neighbours")],
            "error of the predicted time, median, %, logarithmic", under="Rank counts left out", labels=(0, 1), rows="^(?!of )", logarithmic=True),
    Picture("zero-trainer", "zero-trainer", [Series("of DDP", "of DDP's step"), Series("of FSDP2", "of FSDP2's step")],
            "step of 60 million parameters over that of PyTorch's, median and least to most of five rounds", under="60 million parameters, 2 ranks",
            reference=1, reference_label="PyTorch's step; left of it is faster"),
    Picture("zero-paper", "zero-paper", [Series("share")],
            "share of a step that waits for communication, %, simulated; a row is the way to gather and the number of ranks",
            under="Where plain ZeRO-3 stops scaling", labels=(0, 1), rows=r"^Ring, \d+$|4096$", bars=True),
    Picture("demo", "demo", [Series("default"), Series("default again"), Series("adaptive from nothing"), Series("adaptive, second run"),
                             Series("one channel")],
            "step of the last fifth, ms, one run of each", under="Last fifth of the run", bars=True),
    Picture("advise", "advise", [Series("predicted"), Series("measured", "measured, and its rounds", interval="rounds")],
            "step with the change over the step without it: 2 ranks, 0.5 GB/s and 100 us, stage 2", under="2 ranks on two nodes",
            reference=1, reference_label="the step without the change"),
    Picture("agents-scenarios", "agents-scenarios", [Series("mean loss")],
            "what the borders cost over the oracle's, each size at its protocol's best config, %, mean of 72 lines",
            under="A bucket of another size", bars=True),
    Picture("agents-structure", "agents-structure", [Series("LSTM"), Series("histogram", "random forest"), Series("hidden Markov"), Series("list of rules")],
            "F1 of the role of calls, framework left out of training, seed 1", under="Frameworks never seen",
            reference=0.85, reference_label="what was asked; right of it is better"),
    Picture("agents-sweeping", "agents-sweeping", [Series("active"), Series("grid"), Series("random", "random, and its range")],
            "regret of the sweep's own choice, %, mean of 180 keys; left is better"),
    Picture("hostccl-against-openmpi", "hostccl-against-openmpi", [Series("ratio")],
            "Open MPI's time over hostccl's, 2 ranks, memory registered as a window, logarithmic", under="Registered memory", labels=(0, 2),
            reference=1, reference_label="equal times; right of it hostccl is faster", logarithmic=True),
    Picture("trace-formats", "trace-formats", [Series("MB/s")],
            "MB of the file for each second of one core, median and least to most of five rounds, logarithmic", under="All formats",
            reference=100, reference_label="what was asked; right of it is better", logarithmic=True),
    Picture("tune", "tune", [Series("ratio")], "step with what the tune found over the unchanged job's step, 95 % interval", under="Seven whole tunes",
            rows="^(FSDP2|DDP|trainer, stage 3, two-nodes-slow-rail)", reference=1, reference_label="the unchanged job; left of it is faster"),
    Picture("speed", "speed", [Series("before"), Series("after")], "instructions of one AllReduce of 1K, 2 ranks, without waiting",
            under="Where the instructions went", bars=True),
    Picture("hostccl-agreement", "hostccl-agreement", [Series("MareNostrum", "MareNostrum 5, 4 nodes x 4"), Series("hostccl, 4 nodes x 1", "hostccl, 4 nodes x 1"),
                                                       Series("hostccl, 4 nodes x 2", "hostccl, 4 nodes x 2")],
            "time of Ring over time of Tree, AllReduce, by bytes", under="Ring and Tree", reference=1, reference_label="equal; right of it Tree is faster"),
    Picture("scale", "scale", [Series("healthy", "healthy fabric", 1), Series("slow node", "one slow node", 1)],
            "gained by the guard in 1,000 steps, % of the job at NCCL's picks, median of five seeds; simulated", under="Gain and loss",
            reference=0, reference_label="NCCL's picks; left of it the guard costs"),
    Picture("agreement", "agreement", [Series("p50", "median"), Series("p99", "99 of 100 below"), Series("p99.9", "999 of 1,000 below")],
            "ns on the thread that issues the call, reading the clock included", under="What it costs on the path", bars=True),
    Picture("canary", "canary", [Series("changed", "another choice"), Series("worse", "something grave")],
            "upgrades of 21 from one release to the next, 2.21.5 to 2.32.3, that bring it", under="False alarms", rows="^(?!all)", bars=True),
    Picture("faults", "faults", [Series("grew by", "grew")], "growth of the leader's private memory, KiB a minute, in a job of four ranks",
            under="Memory of a job", bars=True, reference=1536, reference_label="the bound, 1,536"),
    Picture("hostccl-links", "hostccl-links", [Series("a core a rank"), Series("two ranks a core")],
            "seen over set, %: median, least and most of five bandwidths or six latencies", under="In short",
            reference=0, reference_label="as set; right of it latency is too long and bandwidth too high"),
    Picture("nccl-releases", "nccl-releases", [Series("another algorithm or protocol"), Series("other channels alone")],
            "calls of 1,380 that choose otherwise, on described machines", bars=True,
            sentences=r"(?m)^## (\S+ to \S+)\n\nOf 1380 calls in \d+ worlds (\d+) \(.*?\) choose another algorithm or protocol, (\d+) \("),
    Picture("real-nccl", "real-nccl", [Series("preload", "equal while observing", 1), Series("preload", "asked and taken, preload", 2),
                                       Series("tuner", "asked and taken, tuner variable", 2)],
            "calls of 75 (observing), decisions that named a choice (asked); a row is an NCCL release, some are left out", under="Every release",
            rows=r"^2\.(18\.3|19|20|21|22|23|24|25|26\.5|27\.3|27\.7|28\.9|29\.7|30\.7|31|32)"),
    Picture("receipts", "receipts", [Series("refuted"), Series("of them false", "false")],
            "settings that receipts of clean runs on ten releases and five machines call not in effect", under="Releases and machines", bars=True),
    Picture("replay", "replay", [Series("default us", "default"), Series("best us", "best of what was forced")],
            "time of a call, us, logarithmic; 4 ranks on two emulated nodes", under="A data-parallel ResNet", labels=(0, 1), rows="^(?!whole)",
            logarithmic=True),
    Picture("torch-distributed-tests", "torch-distributed-tests", [Series("dynamiccl"), Series("gloo")],
            "tests of PyTorch's distributed_test.py", rows="^(passed|failed|skipped by PyTorch|not run)$", bars=True),
    Picture("shakespeare", "shakespeare", [Series("bits per byte")], "bits per byte of Hamlet; less is better", bars=True),
]

LISTS = ("building", "first-minute", "hypotheses", "long-checks", "mutations", "reliability")

if __name__ == "__main__":
    sys.exit(main())
