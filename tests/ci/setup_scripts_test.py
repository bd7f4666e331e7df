# SPDX-License-Identifier: Apache-2.0
"""Tests the scripts of tools/setup and .ci/run: if they cannot continue, they must say what to do.

They must also run what they say that they run. Each script runs in its own folder. There, ctest and the scripts that it
calls are replaced by ones that do nothing.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "tools/setup"
# Prints its arguments. A list of tests (-N) succeeds; a run of tests reports a failure.
CTEST = """#!/bin/sh
case " $* " in
  *" -N "*) echo "Total Tests: 12"; exit 0 ;;
esac
echo "ctest $*"
echo "50% tests passed, 1 tests failed out of 2"
echo "Total Test time (real) = 1 sec"
exit 8
"""


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dynamiccl_setup_")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools/setup").mkdir(parents=True)

    def script(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        (self.root / path).chmod(0o755)

    def run_script(self, name, *arguments, **environment):
        shutil.copy(SETUP / name, self.root / "tools/setup" / name)
        own = {name: value for name, value in os.environ.items() if name not in ("CXX", "DYNAMICCL_JOBS")}
        own["PATH"] = f"{self.root}/bin:{own['PATH']}"
        return subprocess.run([str(self.root / "tools/setup" / name), *arguments], capture_output=True, text=True,
                              check=False, env=own | environment)

    def files(self):
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def refused(self, compiler, **environment):
        """Returns the message of build.sh about a folder that this compiler built. build.sh must change nothing."""
        self.script("tools/setup/build.sh", (SETUP / "build.sh").read_text())
        self.script("build/release/CMakeCache.txt", f"CMAKE_CXX_COMPILER:FILEPATH={compiler}\n")
        before = self.files()
        done = self.run_script("build.sh", **environment)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(self.files(), before)
        self.assertIn(f"hint: rm -r {self.root}/build/release", done.stderr)
        return done.stderr

    def test_build_folder_of_another_compiler(self):
        self.script("bin/first++", "#!/bin/sh\n")
        self.script("bin/second++", "#!/bin/sh\n")
        said = self.refused(self.root / "bin/first++", CXX="second++")
        self.assertIn(f"was built with {self.root}/bin/first++, which is not the compiler now ({self.root}/bin/second++)", said)
        self.assertIn("or unset CXX", said)

    def test_build_folder_of_a_compiler_that_is_gone(self):
        said = self.refused(self.root / "bin/gone++")
        self.assertIn("bin/gone++, which is not the compiler now", said)
        self.assertNotIn("CXX", said)

    def run_tests(self, *arguments):
        for name in ("install", "build", "fetch_nccl", "fetch_nvcc", "fetch_shakespeare"):
            self.script(f"tools/setup/{name}.sh", "#!/bin/sh\n")
        self.script("bin/ctest", CTEST)
        done = self.run_script("test.sh", *arguments, DYNAMICCL_JOBS="2")
        self.assertEqual(done.returncode, 8, "ctest's own exit code")
        return done.stdout.splitlines()[-4:]

    def test_failed_configure_is_told_and_leaves_nothing_beside_the_build_folder(self):
        self.script("bin/cmake", "#!/bin/sh\necho LibTorch was not found; exit 1\n")
        done = self.run_script("build.sh")
        self.assertEqual(done.returncode, 3)
        self.assertIn("LibTorch was not found", done.stderr)
        self.assertEqual({path.name for path in self.root.iterdir()}, {"bin", "build", "tools"})

    def test_build_of_tests_and_of_programs_leave_out_what_they_say(self):
        self.script("bin/cmake", '#!/bin/sh\necho "$*" >>"$(dirname "$0")/commands"\n')
        for argument, target, built in (([], "", "ON ON ON"), (["tests"], "", "ON OFF OFF"),
                                        (["programs"], " programs", "OFF OFF OFF")):
            (self.root / "bin/commands").unlink(missing_ok=True)
            self.assertEqual(self.run_script("build.sh", *argument, DYNAMICCL_JOBS="2").returncode, 0)
            configured, build = (self.root / "bin/commands").read_text().splitlines()
            parts = zip(("TESTS", "BENCH", "STUDIES"), built.split())
            self.assertTrue(configured.endswith(" ".join(f"-DDYNAMICCL_BUILD_{part}={on}" for part, on in parts)), configured)
            self.assertTrue(build.endswith(f"--parallel 2 --{target}"), build)

    def run_ci(self, **outputs):
        """Returns (exit code, lines) of .ci/run. Steps print the given texts; a text that begins with "!" fails."""
        steps = {"install": "", "fetch_nccl": "", "fetch_nvcc": "", "build": "", "test_sanitized": "", "check_a": "",
                 "site_widths": "", "test": "100% tests passed, 0 tests failed out of 2\nTotal Test time (real) = 1 sec"}
        folders = {"check_a": ".ci/check_a.sh", "site_widths": "tools/docs/site_widths.py"}
        for name, text in {**steps, **outputs}.items():
            code = f"#!/bin/sh\ncat <<'END'\n{text.lstrip('!')}\nEND\nexit {int(text.startswith('!'))}\n"
            self.script(folders.get(name, f"tools/setup/{name}.sh"), code)
        for name in ("run", "compiler_warnings.sh"):
            self.script(f".ci/{name}", (SETUP.parents[1] / ".ci" / name).read_text())
        done = subprocess.run([str(self.root / ".ci/run")], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_ci_without_findings_ends_with_the_tests_closing_lines(self):
        code, lines = self.run_ci()
        self.assertEqual(code, 0)
        self.assertRegex(lines[-3], "^==> the run took [01] min; the aim of 60 min was kept$")
        self.assertEqual([line[:5] for line in lines[-2:]], ["100% ", "Total"])

    def test_ci_tells_at_its_end_what_failed(self):
        for steps in ({"install": "!no apt"}, {"check_a": "!a finding"}, {"build": "!error: no", "test": "!50% tests passed"}):
            code, lines = self.run_ci(**steps)
            self.assertEqual(code, 1)
            named = " ".join({"check_a": "check_a.sh", "test": "tests"}.get(name, name) for name in steps)
            self.assertEqual(lines[-1], f"==> FAILED: {named}")
            for text in steps.values():
                self.assertGreaterEqual(lines.count(text[1:]), 2, "in its place and at the end")

    def test_ci_fails_for_warnings_of_a_compiler_and_asks_for_them_again(self):
        self.script("build/release/.ninja_log", "")
        noise = "ccache: warning: slow\nninja: warning: old\nCMake Warning at a.cmake:3 (message):\n[1/2] warning: x.cc.o"
        self.assertEqual(self.run_ci(build=noise)[0], 0)
        self.assertTrue((self.root / "build/release/.ninja_log").exists())
        for warning in ("/a/b.cc:3:4: warning: unused [-Wunused]", "/usr/bin/ld: warning: x.so needed",
                        "cc1plus: warning: no option", "a/b.cu(12): warning #177-D: unused"):
            code, lines = self.run_ci(build=f"[1/2] Building\n{warning}")
            self.assertEqual([code, lines[-1]], [1, "==> FAILED: compiler_warnings"], warning)
        self.assertFalse((self.root / "build/release/.ninja_log").exists())

    def test_long_tests_are_left_out_and_counted_before_the_closing_lines(self):
        began, note, *closing = self.run_tests("-R", "Guard")
        self.assertTrue(began.endswith("-j 2 -LE slow|long -R Guard"), began)
        self.assertEqual(note, "==> 12 long tests and those of studies and benchmarks are left out; all of them: tools/setup/test.sh --all")
        self.assertEqual([line[:5] for line in closing], ["50% t", "Total"])

    def test_all_leaves_out_only_the_slow_ones(self):
        *_, began, verdict, time = self.run_tests("--all", "-R", "Guard")
        self.assertTrue(began.endswith("-j 2 -LE slow -R Guard"), began)
        self.assertEqual([verdict[:5], time[:5]], ["50% t", "Total"])


if __name__ == "__main__":
    unittest.main()
