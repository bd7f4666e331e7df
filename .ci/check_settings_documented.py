#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Settings and their documentation agree: each row of settings.def is documented, each variable that the documentation
or the code names exists."""
import re

from source_files import CPP, read, report, tracked

SETTINGS = "src/base/settings.def"
NAME = re.compile(r"\b(?:DYNAMICCL|HOSTCCL)_[A-Z0-9_]*[A-Z0-9]\b")
LITERAL = re.compile(r'"((?:DYNAMICCL|HOSTCCL)_[A-Z0-9_]*[A-Z0-9])"')


def names_in(path):
    for number, line in enumerate(read(path).splitlines(), 1):
        for name in NAME.findall(line):
            yield number, name


def settings():
    return {match for match in LITERAL.findall(read(SETTINGS))}


def other_names():
    """What a reader may also set, or meet in code: CMake options, variables of scripts, macros, variables of tests."""
    names = set()
    build_files = [path for path in tracked(".txt", ".cmake", ".sh", ".in") if path.name != "packages.txt"]
    for path in build_files:
        names.update(name for _, name in names_in(path))
    for path in tracked(*CPP):
        names.update(re.findall(r"#define\s+((?:DYNAMICCL|HOSTCCL)_\w+)", read(path)))
        if str(path).startswith("tests/"):
            names.update(LITERAL.findall(read(path)))
    return names


def main():
    rows, others = settings(), other_names()
    documents = [path for path in tracked(".md") if path.name != "CHANGELOG.md"]
    documented, violations = set(), []
    for path in documents:
        for number, name in names_in(path):
            documented.add(name)
            if name not in rows | others:
                violations.append(f"{path}:{number}: {name} is documented but does not exist")
    for path in tracked(*CPP):
        if str(path).startswith("tests/"):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            violations += [f"{path}:{number}: {name} is no row of {SETTINGS}"
                           for name in LITERAL.findall(line) if name not in rows | others]
    for number, line in enumerate(read(SETTINGS).splitlines(), 1):
        violations += [f"{SETTINGS}:{number}: {name} is not documented in any .md"
                       for name in LITERAL.findall(line)[:1] if name not in documented]
    report("settings documented", f"{len(rows)} settings against {len(documents)} documents", violations)


main()
