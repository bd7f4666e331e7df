#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small functions, small files: 9 of 10 functions at most 25 lines, none over 60, no file over 500.

Functions of C++ are found by their braces: a '{' whose statement has a parameter list and is no initialiser. Code
formatted by clang-format, with which the tree is checked, leaves no doubt in practice.
"""
import ast
import re

from source_files import CPP, read, report, tracked

MAX_P90, MAX_FUNCTION, MAX_FILE = 25, 60, 500
SCOPE = re.compile(r"(template\s*<.*>\s*)?(inline\s+)?(namespace|class|struct|union|extern\s+\"\")\b(?!.*\)\s*$)", re.S)


def blanked(code):
    """The code with comments, preprocessor lines and the insides of literals made blank; line breaks stay."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
                       r"|^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*", re.S | re.M)

    def blank(match):
        text = match[0]
        literal = '""' if text[0] in "\"R" else "0" if text[0] == "'" else ""
        return literal + "\n" * text.count("\n")

    code = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", code)  # digit separators
    return re.sub(r"\b(public|private|protected)\s*:", ";", token.sub(blank, code))


def closing(code, start):
    """Index of the brace that closes the one at `start`."""
    depth = 0
    for brace in re.finditer(r"[{}]", code[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start + brace.start()
    return len(code) - 1


def is_function(statement):
    before_parameters = statement.split("(")[0]
    return "(" in statement and ("=" not in before_parameters or "operator" in before_parameters)


def cpp_functions(code):
    """(first line, number of lines) of each function, those in classes included."""
    code = blanked(code)
    statement_start = position = 0
    while position < len(code):
        letter = code[position]
        if letter in ";}":
            statement_start = position + 1
        elif letter == "{":
            statement = code[statement_start:position]
            initialiser = position > 0 and not code[position - 1].isspace()
            if initialiser:
                position = closing(code, position)
            elif SCOPE.match(statement.lstrip()):
                statement_start = position + 1
            else:
                end = closing(code, position)
                if is_function(statement):
                    begin = statement_start + len(statement) - len(statement.lstrip())
                    yield code.count("\n", 0, begin) + 1, code.count("\n", begin, end) + 1
                position, statement_start = end, end + 1
        position += 1


def python_functions(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.end_lineno - node.lineno + 1


def main():
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
    lengths.sort(key=lambda row: row[0])
    p90 = lengths[len(lengths) * 9 // 10][0] if lengths else 0
    if p90 > MAX_P90:
        violations.append(f"9 of 10 functions have at most {p90} lines, {MAX_P90} are allowed")
    report("size budget", f"{len(lengths)} functions (9 of 10 at most {p90} lines) in {len(files)} files", violations)


main()
