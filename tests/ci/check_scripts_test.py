# SPDX-License-Identifier: Apache-2.0
"""Tests that the checks of .ci find faults. Each check runs in a small repository with one fault."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

CHECKS = pathlib.Path(__file__).resolve().parents[2] / ".ci"
SETTINGS = 'DYNAMICCL_SETTING(kMode, "DYNAMICCL_MODE", Text, "", "What it does.")\n'
GOOD = {
    "src/base/settings.def": SETTINGS,
    "src/base/clock.h": "#pragma once\ninline int Now() { return 0; }\n",
    "src/policy/policy.h": '#pragma once\n#include "src/base/clock.h"\ninline int Later() { return Now() + 1; }\n',
    "docs/settings.md": "`DYNAMICCL_MODE` says what to do.\n",
    ".clang-format": "BasedOnStyle: Google\n",
}


def function_of(lines, name="Long"):
    return f"inline void {name}(int& x) {{\n" + "  if (x > 0) { ++x; }\n" * (lines - 2) + "}\n"


class CheckTest(unittest.TestCase):
    def run_check(self, name, files):
        """Runs a check on GOOD with `files` added. Returns (exit code, output)."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(CHECKS, root / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
            for path, text in {**GOOD, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            subprocess.run(["git", "init", "-q", folder], check=True)
            done = subprocess.run([str(root / ".ci" / name)], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def expect_fault(self, name, files, *words):
        code, output = self.run_check(name, files)
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def expect_ok(self, name, files=None):
        code, output = self.run_check(name, files or {})
        self.assertEqual(code, 0, output)

    def test_a_clean_tree_passes_the_fast_checks(self):
        for name in ("check_include_directions.py", "check_size_budget.py", "check_settings_documented.py"):
            self.expect_ok(name)

    def test_links(self):
        book = {"docs/README.md": "[a](a.md), [its end](a.md#the-end), [site](https://example.org/x)\n", "docs/a.md": "# A\n## The end\n"}
        book["docs/settings.md"] = GOOD["docs/settings.md"]
        linked = {**book, "docs/README.md": book["docs/README.md"] + "[settings](settings.md)\n"}
        self.expect_ok("check_links.py", linked)
        self.expect_fault("check_links.py", book, "docs/settings.md: no page leads here")
        self.expect_fault("check_links.py", {**linked, "docs/a.md": "[gone](b.md)\n# A\n## The end\n"}, "docs/a.md:1", "there is no docs/b.md")
        self.expect_fault("check_links.py", {**linked, "docs/a.md": "# A\n"}, "docs/README.md:1", "has no such heading")

    def test_openings_of_results(self):
        page, finding, picture = "docs/results/a.md", "It takes 3 ms.\n", "![3 ms](pictures/a.svg)\n"
        for good in (f"{finding * 3}\n{picture}\nMore.\n", f"{finding}\n| a |\n"):
            self.expect_ok("check_openings.py", {page: "# A\n\n" + good, "docs/b.md": f"# B\n\n{finding * 9}"})
        for bad, line, advice in ((f"{finding * 4}\n{picture}", 6, "shorten the opening of 4 lines to 3"), ("| a |\n", 3, "write the finding here"),
                                  (f"{finding}\n| a |\n\n{picture}", 7, "move this picture to line 5"), (f"{picture}\n{finding}", 3, "write the finding here"),
                                  ("x" * 121 + "\n", 3, "wrap this line"), ("", 3, "write the finding here")):
            self.expect_fault("check_openings.py", {page: "# A\n\n" + bad}, f"{page}:{line}: {advice}")
        self.expect_fault("check_openings.py", {page: "# A\n" + finding}, f"{page}:3: write the finding here")

    def test_upward_include(self):
        self.expect_fault("check_include_directions.py", {"src/base/bad.h": '#include "src/policy/policy.h"\n'},
                          "src/base/bad.h:1", "src/base may not include it")

    def test_plugin_may_use_only_record_and_format_of_traces(self):
        files = {"traces/record/recorder.h": "", "traces/import/kineto.h": "",
                 "plugin/runtime/a.cc": '#include "traces/record/recorder.h"\n#include "traces/import/kineto.h"\n'}
        self.expect_fault("check_include_directions.py", files, "plugin/runtime/a.cc:2", "1 violations")

    def test_torch_outside_its_folders(self):
        self.expect_fault("check_include_directions.py", {"tools/bad.cc": "#include <torch/torch.h>\n"}, "tools/bad.cc:1")
        self.expect_ok("check_include_directions.py", {"agents/good.cc": "#include <torch/torch.h>\n"})

    def test_include_of_a_missing_file(self):
        self.expect_fault("check_include_directions.py", {"src/base/bad.h": '#include "clock.h"\n'}, "no such file")

    def test_long_function_is_found_in_a_class_and_named_by_its_line(self):
        inside = "#pragma once\nclass A {\n public:\n" + function_of(61) + "};\n"
        self.expect_fault("check_size_budget.py", {"src/base/bad.h": inside}, "src/base/bad.h:4", "61 lines")

    def test_constructor_with_initialisers_is_one_function(self):
        code = "struct A {\n  A()\n      : a_{1},\n        b_{2} {\n" + "    ++a_;\n" * 60 + "  }\n  int a_, b_;\n};\n"
        self.expect_fault("check_size_budget.py", {"src/base/bad.h": code}, "src/base/bad.h:2")

    def test_long_tables_and_braces_in_literals_are_no_functions(self):
        table = "const char* const kTable[] = {\n" + '    "}{(", // }}\n' * 100 + "};\n"
        self.expect_ok("check_size_budget.py", {"src/base/good.cc": table + function_of(20)})

    def test_many_middling_functions_break_the_budget(self):
        code = "".join(function_of(30, f"F{index}") for index in range(10))
        self.expect_fault("check_size_budget.py", {"src/base/bad.cc": code}, "9 of 10 functions")

    def test_large_class_says_why(self):
        members = "".join(f"  std::map<int, int> member_{index}_ = {{}};\n" for index in range(21))
        large = "class Large {\n public:\n  int Size() const { return 0; }\n\n private:\n" + members + "};\n"
        wide = "class Wide {\n" + "".join(f"  int F{index}(int x, int y) const;\n" for index in range(31)) + "};\n"
        for code, words in ((large, "Large has 21 members and 1 functions"), (wide, "Wide has 0 members and 31 functions")):
            self.expect_fault("check_size_budget.py", {"src/base/bad.h": "// It is large.\n" + code}, "src/base/bad.h:2", words)
            self.expect_ok("check_size_budget.py", {"src/base/good.h": "// It is large because it has to be.\n" + code})
        enough = large.replace("  std::map<int, int> member_0_ = {};\n", "  struct Own { int a, b, c; };\n  static constexpr int kMany = 3;\n")
        self.expect_ok("check_size_budget.py", {"src/base/good.h": enough})

    def test_undocumented_setting_and_unknown_variable(self):
        self.expect_fault("check_settings_documented.py", {"docs/settings.md": "nothing\n"}, "settings.def:1")
        self.expect_fault("check_settings_documented.py", {"docs/more.md": "Set `DYNAMICCL_COLOUR`.\n"}, "docs/more.md:1")
        self.expect_fault("check_settings_documented.py", {"tools/a.cc": 'auto x = getenv("HOSTCCL_NEW");\n'}, "tools/a.cc:1")

    def test_types_that_pages_name(self):
        pages = {"README.md": "A `Clock` ticks.\n", "docs/architecture.md": "", "docs/glossary.md": "`Clock::now`, `DYNAMICCL_X`\n"}
        good = {**pages, "src/base/clock.h": "struct Clock {\n  int now = 0;\n};\n",
                "src/policy/policy.h": "inline int Now(const Clock& clock) { return clock.now; }\n"}
        self.expect_ok("check_named_types.py", good)
        self.expect_fault("check_named_types.py", {**good, "src/base/clock.h": "\n"}, "README.md:1", "defines")
        self.expect_fault("check_named_types.py", {**good, "docs/glossary.md": "`Clock::later`\n"}, "glossary.md:1", "later")
        unused = {"src/policy/policy.h": "// A Clock.\n", "tests/clock_test.cc": "Clock clock;\n"}
        self.expect_fault("check_named_types.py", {**good, **unused}, "nothing outside src/base/clock.h uses it")

    def test_header_that_lacks_an_include(self):
        self.expect_fault("check_headers_alone.sh", {"src/base/bad.h": "#pragma once\nstd::string Name();\n"},
                          "src/base/bad.h:1")
        self.expect_ok("check_headers_alone.sh")

    @unittest.skipUnless(shutil.which("clang-format"), "clang-format is not installed")
    def test_unformatted_file(self):
        self.expect_fault("check_format.sh", {"src/base/bad.cc": "int  a ;\n"}, "src/base/bad.cc")
        self.expect_ok("check_format.sh")

    def test_script_that_does_not_parse(self):
        self.expect_fault("check_scripts.sh", {".ci/run": "#!/bin/bash\n", "tools/bad.sh": "#!/bin/bash\nif true\n"}, "bad.sh")

    def test_script_that_shellcheck_finds_fault_with(self):
        self.expect_fault("check_scripts.sh", {".ci/run": "#!/bin/bash\n", "tools/bad.sh": "#!/bin/bash\ncd $1\n"}, "tools/bad.sh:2")

    def test_without_shellcheck_nothing_is_judged_good(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "env", "git", "dirname"):
                (pathlib.Path(folder) / name).symlink_to(shutil.which(name))
            with unittest.mock.patch.dict(os.environ, PATH=folder):
                self.expect_fault("check_scripts.sh", {".ci/run": "#!/bin/bash\n"}, "shellcheck is not installed: tools/setup/install.sh")


if __name__ == "__main__":
    unittest.main()
