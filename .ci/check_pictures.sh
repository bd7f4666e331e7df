#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each picture of docs/results is what its page's table gives. tools/docs/draw_tables.py draws them anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 -B tools/docs/draw_tables.py --check
