#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pages build as a site: each is in the site's list, and no link leads nowhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/docs/build_site.sh >/dev/null || { echo "site: violations above"; exit 1; }
echo "site: $(find docs -name '*.md' | wc -l) pages: ok"
