#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files of a target are compiled together, as one translation unit.

Most of the time that g++ spends on a file goes into headers that its neighbours read too. Files that are compiled
together share that work, but also their file-local names: two of them may each have a `kVersion` in an unnamed namespace.
So a file joins a group only when none of its local names stands in the group already.

Reads lines "target<TAB>file<TAB>file..." from standard input and prints lines "target<TAB>group<TAB>file..." for
each group of two files or more; files that remain alone are left out.
"""
import re
import sys

MAX_FILES = 12
# A group of this many lines compiles in about ten seconds: a changed file is still rebuilt quickly.
MAX_LINES = 1600

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[^\w\n]", re.M)  # one without a value may stand twice
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
TOKEN = re.compile(r"\w+|::|[{}();=<>\[\],:]|\S")
USING_NAMESPACE = re.compile(r"^using namespace", re.M)  # would hold for the files behind it too
WORD = re.compile(r"[A-Za-z_]\w*$")


def skip(tokens, position, opening, closing):
    """Index behind the bracket that closes the one at `position`."""
    depth = 0
    for index in range(position, len(tokens)):
        depth += tokens[index] == opening
        depth -= tokens[index] == closing
        if depth == 0:
            return index + 1
    return len(tokens)


def declared(statement):
    """The name that a statement declares: of a type, a function or a variable. None where there is none."""
    for index, token in enumerate(statement):
        follows = statement[index + 1] if index + 1 < len(statement) else ";"
        if token in ("struct", "class", "enum", "union", "using", "concept", "namespace") and follows not in ("class", "struct"):
            # A using-declaration and a short name of a namespace may stand twice.
            may_repeat = token == "namespace" or (token == "using" and "=" not in statement)
            return follows if WORD.match(follows) and not may_repeat else None
        if token == "operator":
            return None
        if WORD.match(token) and follows in ("(", "=", "[", ";", "{") and token not in ("alignas", "decltype", "noexcept", "requires"):
            # A member of a class that is declared elsewhere, or a macro such as TEST.
            return None if token.isupper() or (index > 0 and statement[index - 1] == "::") else token
    return None


def without_brackets(statement):
    """The statement with template arguments and attributes left out, and the insides of brackets."""
    result, depth = [], 0
    for token in statement:
        if token in "<([" and len(token) == 1:
            if depth == 0 and token != "<":
                result.append(token)
            depth += 1
        elif token in ">)]" and len(token) == 1:
            depth = max(0, depth - 1)
        elif depth == 0:
            result.append(token)
    return result


def local_names(text):
    """Names that belong to this file alone: macros, and what unnamed namespaces and `static` declare."""
    names = set(MACRO.findall(text))
    tokens = TOKEN.findall(DIRECTIVE.sub(" ", COMMENT_OR_TEXT.sub(lambda m: " " if m[0].startswith("/") else '0', text)))
    position, scopes, statement = 0, [], []
    while position < len(tokens):
        token = tokens[position]
        if token == "{":
            if statement and ("namespace" in statement[:2] or statement[:2] == ["extern", "0"]):
                scopes.append(statement == ["namespace"] or (bool(scopes) and scopes[-1]))
                statement, position = [], position + 1
                continue
            add(names, statement, scopes)
            closing = skip(tokens, position, "{", "}")
            if "enum" in statement and "class" not in statement:
                names |= {name for before, name in zip(tokens[position:closing], tokens[position + 1:closing]) if before in "{,"}
            # An initialiser goes on to its semicolon; a function or a type ends here.
            if "(" in statement and "=" not in statement:
                statement = []
            position = closing
            continue
        if token == ";":
            add(names, statement, scopes)
            statement = []
        elif token == "}":
            if scopes:
                scopes.pop()
            statement = []
        else:
            statement.append(token)
        position += 1
    return names


def add(names, statement, scopes):
    if not statement:
        return
    if (scopes and scopes[-1]) or "static" in statement:
        name = declared(without_brackets(statement))
        if name:
            names.add(name)


def groups_of(files):
    """Files put together in their order, each into the first group that has room for it and none of its names."""
    groups = []
    for file in files:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        names, lines = local_names(text), text.count("\n")
        for group in [] if USING_NAMESPACE.search(text) else groups:
            if len(group["files"]) < MAX_FILES and group["lines"] + lines <= MAX_LINES and not names & group["names"]:
                break
        else:
            group = {"files": [], "lines": MAX_LINES if USING_NAMESPACE.search(text) else 0, "names": set()}
            groups.append(group)
        group["files"].append(file)
        group["lines"] += lines
        group["names"] |= names
    return [group["files"] for group in groups]


def main():
    for line in sys.stdin:
        target, *files = line.rstrip("\n").split("\t")
        for number, group in enumerate(groups_of(files)):
            if len(group) > 1:
                print("\t".join([target, str(number), *group]))


if __name__ == "__main__":
    main()
