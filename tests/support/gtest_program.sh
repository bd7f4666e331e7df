#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a gtest program. Exit code 77 says that it ended well and skipped a case; any failure keeps its own code, a crash at
# the program's end too, which a SKIP_REGULAR_EXPRESSION of ctest would report as skipped.
#
#   gtest_program.sh PROGRAM [argument...]
set -uo pipefail

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
ended=${PIPESTATUS[0]}
[[ $ended -eq 0 ]] || exit "$ended"
! grep -q '^\[  SKIPPED \]' "$log" || exit 77
