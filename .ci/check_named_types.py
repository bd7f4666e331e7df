#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages that explain the project name types that exist and are used: each type in back-ticks is defined in a header
of the product and occurs in another of its files; a member named with it (`Type::member`) occurs in that header."""
import re

from source_files import CPP, read, report, tracked

PAGES = ("README.md", "docs/architecture.md", "docs/glossary.md")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
BACK_TICKS = re.compile(r"`([^`\n]+)`")
# A type as the project writes it, perhaps with a member; variables of the environment are all capitals.
NAME = re.compile(r"([A-Z][a-z0-9]\w*)(?:::(\w+))?(?:\(\))?")
NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
DEFINITION = re.compile(r"\b(?:struct|class|enum(?:\s+class)?|union)\s+(?:\[\[\w+\]\]\s*)?([A-Z]\w*)[^;(){}]*\{"
                        r"|\busing\s+([A-Z]\w*)\s*=")


def product_code():
    """Text without comments and strings, by path."""
    return {path: NO_CODE.sub(" ", read(path)) for path in tracked(*CPP, ".def") if not str(path).startswith("tests/")}


def definitions(code):
    """Headers that define a type, by its name."""
    found = {}
    for path, text in code.items():
        if path.suffix == ".h":
            for match in DEFINITION.finditer(text):
                found.setdefault(match[1] or match[2], set()).add(path)
    return found


def named_in(page):
    text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), read(page))
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in BACK_TICKS.findall(line):
            match = NAME.fullmatch(quoted)
            if match:
                yield number, match[1], match[2]


def problem_of(name, member, code, defined):
    headers = defined.get(name)
    if not headers:
        return "no header of the product defines it"
    word = re.compile(rf"\b{name}\b")
    if not any(word.search(text) for path, text in code.items() if path not in headers):
        return f"nothing outside {', '.join(sorted(map(str, headers)))} uses it"
    if member and not any(re.search(rf"\b{member}\b", code[path]) for path in headers):
        return f"its header names no '{member}'"
    return None


def main():
    code = product_code()
    defined = definitions(code)
    names, violations = set(), []
    for page in PAGES:
        for number, name, member in named_in(page):
            names.add(name)
            problem = problem_of(name, member, code, defined)
            if problem:
                violations.append(f"{page}:{number}: {name + ('::' + member if member else '')}: {problem}")
    report("named types", f"{len(names)} types in {len(PAGES)} pages", violations)


main()
