#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the newest NCCL on PyPI through the matrix: a canary for a weekly job. A CUDA function that the stand-in lacks, a
# plugin interface or a log line that changed shows here first.
#   tests/real_nccl/newest_nccl.sh [BUILD_FOLDER]     exit codes: those of real_nccl_matrix; 4 no release could be had
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build="${1:-build/release}"
[[ -x "$build/tests/real_nccl_matrix" ]] || {
  printf 'error: no %s/tests/real_nccl_matrix\n  hint: cmake --build %s --target real_nccl_matrix\n' "$build" "$build" >&2
  exit 4
}
newest="$(python3 -m pip index versions nvidia-nccl-cu12 2>/dev/null | sed -n 's/^nvidia-nccl-cu12 (\([0-9.]*\)).*/\1/p')"
[[ -n "$newest" ]] || {
  printf 'error: the newest NCCL could not be asked for\n  hint: is PyPI reachable, and pip 21.2 or later?\n' >&2
  exit 4
}
tools/setup/fetch_nccl.sh "$newest" || exit 4
printf '==> NCCL %s, the newest\n' "$newest"
"$build/tests/real_nccl_matrix" --releases "$newest" --machines dgx_h100,dgx_b200 --doors all --json "$build/newest_nccl.json"
