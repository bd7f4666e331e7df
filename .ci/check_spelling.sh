#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# codespell knows no misspelling in pages, comments and messages. Names such as NumberIn are not looked at.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly right=activ,headrom,ond,recrod,reprot,tru # a column's head, and wrong words that tests hand to the program
mapfile -t files < <(git ls-files -co --exclude-standard |
  grep -Ev '^traces/samples/|/golden/|/corpus/|\.(svg|xz|dcpolicy|png)$')
verdict=ok
tools/docs/python.sh -m codespell_lib --check-hidden --ignore-words-list "$right" --ignore-regex '\b\w*[a-z][A-Z]\w*\b' \
  "${files[@]}" || verdict="violations above"
echo "spelling: ${#files[@]} files: $verdict"
[[ "$verdict" == ok ]]
