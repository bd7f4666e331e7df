# SPDX-License-Identifier: Apache-2.0
"""Tests that the README's figures from a GPU are those of the page docs/results/gpu.md."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GPU = (ROOT / "docs/results/gpu.md").read_text()
ROW = re.compile(r"^ +([\d.]+)(?: +([\d.]+) +([\d.]+) to ([\d.]+))? +(default|ring/simple/(\d+): faster|ring/ll128/(\d+): faster)", re.M)


def cell(row_begin):
    """Returns the text in the page's column about the wide job, in the row that begins with `row_begin`."""
    rows = [[text.strip(" *") for text in line.split("|")[1:-1]] for line in GPU.splitlines() if line.startswith("|")]
    header = next(row for row in rows if row[0] == "setting")
    return next(row for row in rows if row[0].startswith(row_begin))[header.index("wide DDP over memory, H200")]


class AbOnTheReadme(unittest.TestCase):
    def test_rows_are_those_of_the_page(self):
        shown = list(ROW.finditer(README))
        self.assertEqual(len(shown), 3, "the default and two settings")
        for step, ratio, low, high, setting, channels, ll128 in (row.groups() for row in shown):
            if setting == "default":
                self.assertEqual(cell("NCCL's own"), f"{step} ms")
            else:
                begin = f"{channels} channels" if channels else f"Ring LL128, {ll128} channels"
                self.assertEqual(cell(begin), f"{ratio} ({low} to {high})")

    def test_step_times_of_the_limits_are_on_the_page(self):
        limits = re.search(r"took a DDP step from (\d+) to (\d+) ms, and to (\d+) ms", README)
        before, after, again = (float(number) for number in limits.groups())
        told = re.findall(r"^\| (?:as it is|mode adaptive|again) \| ([\d.]+)", GPU, re.M)
        self.assertEqual([before, after, again], [round(float(number)) for number in told])


if __name__ == "__main__":
    unittest.main()
