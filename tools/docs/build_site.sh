#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the pages of docs/ as a site with search into build/site: open build/site/index.html, no server is needed.
# The script fails if a link leads nowhere, or if the list in mkdocs.yml lacks a page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# MkDocs must not run with --quiet: strict mode fails by the number of warnings that MkDocs prints.
tools/docs/python.sh -c '' # installs the packages first, because messages of pip are no warnings about pages
NO_MKDOCS_2_WARNING=1 tools/docs/python.sh -m mkdocs build --clean --config-file tools/docs/mkdocs.yml 2>&1 |
  { grep -v '^INFO' || true; } >&2
printf 'build/site/index.html\n'
