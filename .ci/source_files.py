# SPDX-License-Identifier: Apache-2.0
"""Which files the checks look at: what git tracks, or is about to."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = (".cc", ".h", ".c", ".cu")


def tracked(*suffixes):
    """Paths relative to the root, sorted."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    paths = (pathlib.PurePosixPath(line) for line in listed.splitlines())
    return sorted(path for path in paths if path.suffix in suffixes and (ROOT / path).is_file())


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def report(name, checked, violations):
    """Prints the result and ends the check: 1 when there are violations."""
    for violation in violations:
        print(violation)
    verdict = "ok" if not violations else f"{len(violations)} violations"
    print(f"{name}: {checked}: {verdict}")
    sys.exit(1 if violations else 0)
