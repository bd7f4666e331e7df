#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compiler_warnings.sh LOG: fails if a compiler or linker warned in LOG, the output of tools/setup/build.sh. Warnings of
# CMake, Ninja and ccache do not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found="$(grep -E '^([^ ]*(:[0-9]+|cc1|cc1plus|lto1|ld|nvlink): warning: |[^ ]+\([0-9]+\): warning )' "$1" | sort -u || true)"
[[ -n "$found" ]] || { echo "compiler warnings: none: ok"; exit 0; }
# Ninja compiles what its log does not know, and ccache repeats the warnings: the next run finds them again.
rm -f build/release/.ninja_log
printf '%s\n' "$found"
echo "compiler warnings: $(wc -l <<<"$found"): violations above"
exit 1
