# SPDX-License-Identifier: Apache-2.0
"""Tests tools/docs/draw_tables.py: it must read the tables and numbers of a page, and notice pictures that differ."""
import pathlib
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "docs"))
import draw_tables  # noqa: E402, found by the path above
from draw_tables import Picture, PictureError, Series  # noqa: E402

PAGE = """# Title

![What was found](pictures/found.svg)

| preset, stage | default, ms | adaptive: whole, end | rounds |
|---|---|---|---|
| slow-rail, 3 | 21.4 | **0.739, 0.627** (0.61 to 0.71) | 0.5 to 1.1 |
| nvlink, 3 | 1,234.5 | 1.074, 1.018 (0.93 to 1.06) | 0.9 to 1.2 |
| `not measured` | | - | |

## Printed

    a command

```
                      ranks      step ms      share
Ring                      8        217.0      1.8 %
Ring, shards of 8        16        217.6      2.1 %
```
"""


def mark(cell, *arguments):
    found = draw_tables.mark_of(cell, *arguments)
    return found and (found.value, found.low, found.high)


class Tables(unittest.TestCase):
    def test_markdown_table_loses_emphasis_and_code(self):
        names, rows = draw_tables.read_table(PAGE)
        self.assertEqual(names, ["preset, stage", "default, ms", "adaptive: whole, end", "rounds"])
        self.assertEqual(rows[0], ["slow-rail, 3", "21.4", "0.739, 0.627 (0.61 to 0.71)", "0.5 to 1.1"])
        self.assertEqual(rows[2][0], "not measured")
        self.assertEqual(len(rows), 3)

    def test_printed_table_below_a_heading(self):
        names, rows = draw_tables.read_table(PAGE, "Printed")
        self.assertEqual(names, ["", "ranks", "step ms", "share"])
        self.assertEqual(rows[1], ["Ring, shards of 8", "16", "217.6", "2.1 %"])

    def test_a_bar_inside_a_cell_divides_no_cells(self):
        self.assertEqual(draw_tables.cells_of(r"| a \| b | 2 |"), ["a | b", "2"])

    def test_missing_heading_and_missing_table_are_errors(self):
        with self.assertRaisesRegex(PictureError, "no heading 'Nowhere'"):
            draw_tables.read_table(PAGE, "Nowhere")
        with self.assertRaisesRegex(PictureError, "no table"):
            draw_tables.read_table("# Title\n\nNo table.\n")


class Numbers(unittest.TestCase):
    def test_number_with_its_interval(self):
        self.assertEqual(mark("0.845 (0.80 to 0.88)"), (0.845, 0.80, 0.88))
        self.assertEqual(mark("-0.9 (-1.7 to -0.1)"), (-0.9, -1.7, -0.1))

    def test_interval_belongs_to_the_number_before_it(self):
        self.assertEqual(mark("0.739, 0.627 (0.61 to 0.71)", 0), (0.739, None, None))
        self.assertEqual(mark("0.739, 0.627 (0.61 to 0.71)", 1), (0.627, 0.61, 0.71))

    def test_interval_of_another_column(self):
        self.assertEqual(mark("0.885", 0, "0.557 to 1.079"), (0.885, 0.557, 1.079))

    def test_several_numbers_thousands_and_units(self):
        self.assertEqual(mark("21.8, 22.1; 21.6, 21.6", 3), (21.6, None, None))
        self.assertEqual(mark("0.886 / 0.635 / 0.665", 1), (0.635, None, None))
        self.assertEqual(mark("1,024,512 calls"), (1024512, None, None))
        self.assertEqual(mark("13 of 61"), (13, None, None))
        self.assertEqual(mark("+8.5 %"), (8.5, None, None))

    def test_cells_without_a_number(self):
        for cell in ("", "-", "not run"):
            self.assertIsNone(mark(cell))


class Pictures(unittest.TestCase):
    def setUp(self):
        self.picture = Picture("found", "page", [Series("adaptive", "end", 1), Series("adaptive", "rounds", 1, "rounds")], "ratio", reference=1)

    def test_rows_without_numbers_are_left_out(self):
        heading, marks = draw_tables.marks_of(self.picture, PAGE)
        self.assertEqual(heading, "preset, stage")
        self.assertEqual([name for name, _ in marks], ["slow-rail, 3", "nvlink, 3"])

    def test_rows_may_be_sentences(self):
        picture = Picture("found", "page", [Series("first"), Series("second")], "calls", sentences=r"(?m)^## (\S+)\n\nOf 9 (\d+), (\d+)")
        page = "# Title\n\n## 1.2\n\nOf 9 3, 4 more.\n\n## 1.3\n\nOf 9 5, 0.\n"
        _, marks = draw_tables.marks_of(picture, page)
        self.assertEqual([(name, [each.value for each in row]) for name, row in marks], [("1.2", [3, 4]), ("1.3", [5, 0])])
        with self.assertRaisesRegex(PictureError, "no sentence matches"):
            draw_tables.marks_of(picture, PAGE)

    def test_page_without_a_picture_is_named_unless_it_is_a_list(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("page", "list", "bare"):
                (pathlib.Path(folder) / f"{name}.md").write_text(PAGE)
            found = draw_tables.without_picture([self.picture], ["list"], pathlib.Path(folder))
            self.assertEqual([each.split(":")[0] for each in found], ["docs/results/bare.md"])

    def test_picture_is_xml_with_the_links_text_as_title(self):
        svg = xml.dom.minidom.parseString(draw_tables.draw(self.picture, PAGE))
        self.assertEqual(svg.getElementsByTagName("title")[0].firstChild.data, "What was found")
        self.assertIn("end 0.627 (0.61 to 0.71)", svg.getElementsByTagName("desc")[0].firstChild.data)

    def test_unknown_column_and_page_without_the_link_are_errors(self):
        with self.assertRaisesRegex(PictureError, "no column 'colour'"):
            draw_tables.draw(Picture("found", "page", [Series("colour")], "ratio"), PAGE)
        with self.assertRaisesRegex(PictureError, "does not show"):
            draw_tables.draw(Picture("other", "page", self.picture.series, "ratio"), PAGE)

    def test_check_names_what_differs_and_what_no_table_gives(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder)
            (results / "pictures").mkdir()
            (results / "page.md").write_text(PAGE)
            drawn, faults = draw_tables.drawn_pictures([self.picture], results)
            self.assertEqual(faults, [])
            path = results / "pictures" / "found.svg"
            path.write_text(drawn[path])
            self.assertEqual(draw_tables.check(drawn, path.parent), [])
            (results / "page.md").write_text(PAGE.replace("0.627", "0.628"))
            (path.parent / "stray.svg").write_text("")
            drawn, _ = draw_tables.drawn_pictures([self.picture], results)
            found = draw_tables.check(drawn, path.parent)
            self.assertEqual([each.split(":")[0] for each in found], ["docs/results/pictures/found.svg", "docs/results/pictures/stray.svg"])

    def test_axis_has_round_steps(self):
        self.assertEqual(draw_tables.round_steps(0.58, 1.44), [0.6, 0.8, 1.0, 1.2, 1.4])
        self.assertEqual(draw_tables.round_steps(0, 27), [0, 5, 10, 15, 20, 25])


if __name__ == "__main__":
    unittest.main()
