#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the pages of docs/ as a site with search into build/site: open build/site/index.html, no server is needed.
# A link that leads nowhere, or a page that is missing in the list of mkdocs.yml, fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Not --quiet: MkDocs counts only the warnings that it prints, and strict mode fails by that count.
tools/docs/python.sh -c '' # what pip says is no warning of the pages
NO_MKDOCS_2_WARNING=1 tools/docs/python.sh -m mkdocs build --clean --config-file tools/docs/mkdocs.yml 2>&1 |
  { grep -v '^INFO' || true; } >&2
printf 'build/site/index.html\n'
