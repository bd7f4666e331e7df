#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a gtest program. The exit code is 77 if the program passed and skipped a test. A failure keeps its own exit code.
# This includes a crash at the program's end, which ctest's SKIP_REGULAR_EXPRESSION would report as skipped.
#
#   gtest_program.sh PROGRAM [argument...]
set -uo pipefail

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
ended=${PIPESTATUS[0]}
[[ $ended -eq 0 ]] || exit "$ended"
! grep -q '^\[  SKIPPED \]' "$log" || exit 77
