# SPDX-License-Identifier: Apache-2.0
"""Functions and classes of C++ code, found by their braces.

A '{' whose statement has a parameter list and is no initialiser opens a function. Code formatted by clang-format, with
which the tree is checked, leaves no doubt in practice.
"""
import re

SCOPE = re.compile(r"(template\s*<.*>\s*)?(inline\s+)?(namespace|class|struct|union|extern\s+\"\")\b(?!.*\)\s*$)", re.S)
CLASS = re.compile(r"^(?:template\s*<[^{]*>\s*)?(?:class|struct)\s+(?:alignas\(\w+\)\s*)?(\w+)")
NO_MEMBER = re.compile(r"(using|typedef|friend|static_assert|enum|class|struct|union|static constexpr|static const)\b")


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


def functions(code):
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


def outside_brackets(statement):
    """The statement without what stands in <> and {}."""
    depth, text = 0, ""
    for letter in statement:
        depth += (letter in "<{") - (letter in ">}")
        if depth <= 0 and letter not in ">}":
            text += letter
    return text


def count_declaration(statement, sizes):
    """Adds what a statement of a class that ends in ';' declares to (members, functions)."""
    if not statement or NO_MEMBER.match(statement):
        return
    plain = outside_brackets(statement)
    declared = plain.split("=")[0]
    if "operator" in plain or "(" in declared and not re.search(r"\(\*", declared):
        sizes[1] += 1
    else:
        sizes[0] += 1 + declared.count(",")


def classes(code, begin=None, end=None, name=None):
    """(name, line, members, functions) of each class and struct, those inside others too. Constants and types are no members."""
    if begin is None:
        code, begin = blanked(code), 0
        end = len(code)
    sizes, start, position = [0, 0], begin, begin
    line = code.count("\n", 0, begin) + 1  # that of the class's brace
    while position < end:
        if code[position] == ";":
            count_declaration(code[start:position].strip() if name else "", sizes)
            start = position + 1
        elif code[position] == "{":
            statement, close = code[start:position].strip(), closing(code, position)
            inner, scope = CLASS.match(statement), SCOPE.match(statement)
            if code[position - 1].isspace() and not statement.endswith("="):
                if scope:
                    yield from classes(code, position + 1, close, inner and inner[1])
                elif is_function(statement):
                    sizes[1] += 1
                start = close + 1
            position = close
        position += 1
    if name:
        yield name, line, *sizes
