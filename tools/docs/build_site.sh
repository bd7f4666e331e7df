#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the pages of docs/ as a site with search into build/site: open build/site/index.html, no server is needed.
# A link that leads nowhere, or a page that no reader's list has, fails. MkDocs comes from PyPI into build/site-venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=build/site-venv
[[ -x "$venv/bin/mkdocs" ]] || {
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check mkdocs==1.6.1 mkdocs-material==9.8.2
}
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --clean --config-file tools/docs/mkdocs.yml
printf 'build/site/index.html\n'
