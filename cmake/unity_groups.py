#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files of a target are compiled together, as one translation unit.

Most of the time that g++ spends on a file goes into headers that its neighbours read too. Files that are compiled
together share that work, but also their file-local names: two of them may each have a `kVersion` in an unnamed namespace.
So a file joins a group only when none of its local names stands in the group already, neither as a local name nor in a
header that another file of the group reads.

Reads lines "target<TAB>file<TAB>file..." from standard input and prints lines "target<TAB>group<TAB>file..." for
each group of two files or more; files that remain alone are left out.
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

MAX_FILES = 12
# A group of this many lines takes g++ 12 some 13 CPU seconds: a changed file is still rebuilt quickly.
MAX_LINES = 1600

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[^\w\n]", re.M)  # one without a value may stand twice
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
# What a header declares outside of every class: clang-format puts it at the beginning of a line.
HEADER_NAME = re.compile(r"^(?:class|struct|enum class|enum|using) (\w+)|^[A-Za-z][^()=;{#/\n]*?\b(\w+)(?:\(|\{| = )", re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
TOKEN = re.compile(r"\w+|::|[{}();=<>\[\],:]|\S")
# A `using namespace` would hold for the files behind it too. The reader of TOML costs 5 CPU seconds, which each change of a
# neighbour would pay.
ALONE = re.compile(r'^using namespace|^#include "src/base/toml_reader\.h"', re.M)
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
            # An initialiser goes on to its semicolon; a function ends here.
            plain = without_brackets(statement)
            if "operator" in plain or ("(" in plain and "=" not in plain):
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
        plain = without_brackets(statement)
        name = declared(plain)
        if name:
            names.add(name)
        # int a = 1, b = 2;
        names.update(second for comma, second in zip(plain, plain[1:]) if comma == "," and WORD.match(second))


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def names_of_header(path):
    return frozenset(first or second for first, second in HEADER_NAME.findall(text_of(path)))


@functools.cache
def headers_of(path):
    """The project's headers that a file reads, those that headers read included."""
    found, waiting = set(), [path]
    while waiting:
        for name in INCLUDE.findall(text_of(waiting.pop())):
            header = ROOT / name
            if header not in found and header.suffix == ".h" and header.is_file():
                found.add(header)
                waiting.append(header)
    return frozenset(found)


class Group:
    def __init__(self):
        self.files, self.lines, self.names, self.header_names = [], 0, set(), set()

    def takes(self, lines, names, header_names):
        if len(self.files) >= MAX_FILES or self.lines + lines > MAX_LINES or names & self.names:
            return False
        return not names & self.header_names - header_names and not self.names & header_names - self.header_names

    def add(self, file, lines, names, header_names):
        self.files.append(file)
        self.lines += lines
        self.names |= names
        self.header_names |= header_names


def groups_of(files):
    """Files put together in their order, each into the first group that takes it."""
    groups = []
    for file in files:
        text = text_of(pathlib.Path(file))
        header_names = set().union(*map(names_of_header, headers_of(pathlib.Path(file))))
        facts = (text.count("\n"), local_names(text), header_names)
        alone = ALONE.search(text)
        group = None if alone else next((group for group in groups if group.takes(*facts)), None)
        if group is None:
            group = Group()
            groups.append(group)
        group.add(file, *facts)
        if alone:
            group.lines = MAX_LINES
    return [group.files for group in groups]


def main():
    for line in sys.stdin:
        target, *files = line.rstrip("\n").split("\t")
        for number, group in enumerate(groups_of(files)):
            if len(group) > 1:
                print("\t".join([target, str(number), *group]))


if __name__ == "__main__":
    main()
