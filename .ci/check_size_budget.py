#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small functions, small files, small classes.

9 of 10 functions have at most 25 lines, none has over 60, no file has over 500. A class of the product that has over 20 members
or 30 functions says why in the comment above it ("because ..." or "one for each ...").

  check_size_budget.py             the check
  check_size_budget.py --figures   what there is of the product, as rows of the table in docs/results/building.md
"""
import ast
import re
import sys

from cpp_code import classes, functions as cpp_functions
from source_files import CPP, read, report, tracked

MAX_P90, MAX_FUNCTION, MAX_FILE = 25, 60, 500
MAX_MEMBERS, MAX_METHODS = 20, 30
PRODUCT = ("src", "plugin", "traces", "agents", "zero_workloads", "tools")
REASON = re.compile(r"\b(because|for each|each field is)\b")


def python_functions(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.end_lineno - node.lineno + 1


def comment_above(code, line):
    """The text of the comment lines that end above the class whose brace is in this line."""
    lines = code.split("\n")[:line - 1]
    while lines and lines[-1].strip() and not lines[-1].lstrip().startswith("//"):
        lines.pop()  # a head of several lines
    text = []
    while lines and lines[-1].lstrip().startswith("//"):
        text.append(lines.pop().strip("/ "))
    return " ".join(reversed(text))


def large_classes(path, code):
    for name, line, members, methods in classes(code):
        if members > MAX_MEMBERS or methods > MAX_METHODS:
            yield name, line, members, methods, bool(REASON.search(comment_above(code, line)))


def figures():
    """Rows of a table: what, how much. A line of comment has nothing else; licence lines count as neither."""
    code_lines, comments, small, headers, large = {True: 0, False: 0}, 0, 0, 0, 0
    files = {True: 0, False: 0}
    for path in tracked(*CPP):
        if path.parts[0] not in (*PRODUCT, "studies", "benchmarks"):
            continue
        product, text = path.parts[0] in PRODUCT, read(path)
        lines = [line.strip() for line in text.split("\n") if line.strip() and "SPDX-License-Identifier" not in line]
        own = sum(1 for line in lines if not line.startswith("//"))
        code_lines[product] += own
        files[product] += 1
        if product:
            comments += len(lines) - own
            headers += path.suffix == ".h"
            small += path.suffix == ".h" and own <= 8
            large += sum(1 for _ in large_classes(path, text))
    print(f"| code lines of {', '.join(PRODUCT)}, C++ | {code_lines[True]:,} in {files[True]:,} files |")
    print(f"| of studies and benchmarks | {code_lines[False]:,} in {files[False]:,} files |")
    print(f"| headers of at most 8 code lines in the product | {small} of {headers} |")
    print(f"| comment lines in it | {100 * comments / (comments + code_lines[True]):.1f} % |")
    print(f"| classes over {MAX_MEMBERS} members or {MAX_METHODS} functions, each with its reason | {large} |")


def main():
    if "--figures" in sys.argv:
        figures()
    violations, lengths, files = [], [], tracked(*CPP, ".py", ".sh")
    for path in files:
        code = read(path)
        if code.count("\n") > MAX_FILE:
            violations.append(f"{path}:1: {code.count(chr(10))} lines, at most {MAX_FILE} are allowed")
        functions = cpp_functions if path.suffix in CPP else python_functions if path.suffix == ".py" else lambda _: ()
        for line, length in functions(code):
            lengths.append((length, path, line))
            if length > MAX_FUNCTION:
                violations.append(f"{path}:{line}: a function of {length} lines, at most {MAX_FUNCTION} are allowed")
        if path.suffix in CPP and path.parts[0] in PRODUCT:
            violations += [f"{path}:{line}: {name} has {members} members and {methods} functions, and the comment above it does not say why"
                           for name, line, members, methods, reasoned in large_classes(path, code) if not reasoned]
    lengths.sort(key=lambda row: row[0])
    p90 = lengths[len(lengths) * 9 // 10][0] if lengths else 0
    if p90 > MAX_P90:
        violations.append(f"9 of 10 functions have at most {p90} lines, {MAX_P90} are allowed")
    report("size budget", f"{len(lengths)} functions (9 of 10 at most {p90} lines, the longest {lengths[-1][0] if lengths else 0}) in {len(files)} files", violations)


main()
