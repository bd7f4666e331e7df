#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs releases of NCCL that PyPI has, with every way to load DynamICCL (a "door" of real_nccl_matrix).
#   tests/real_nccl/pypi_releases.sh all [BUILD_FOLDER]
#     runs every release from 2.18 on, on dgx_h100 and dgx_a100: half an hour, 9 GB of wheels
#   tests/real_nccl/pypi_releases.sh newest [BUILD_FOLDER]
#     runs the newest release on dgx_h100 and dgx_b200, as a weekly job does. It shows first when the stand-in lacks a
#     CUDA function, or when a log line or a plugin interface has changed
# Prints the results as a table for docs/results/real-nccl.md, and writes them to BUILD_FOLDER/nccl_releases.json. Exit
# codes: those of real_nccl_matrix; 2 usage; 4 a release could not be downloaded, or the build or PyPI's list is
# missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit "$3"
}

which="${1:-}"
build="${2:-build/release}"
[[ $which == all || $which == newest ]] || fail "'$which' is neither all nor newest" "tests/real_nccl/pypi_releases.sh all" 2
[[ -x "$build/tests/real_nccl_matrix" ]] ||
  fail "no $build/tests/real_nccl_matrix" "cmake --build $build --target real_nccl_matrix" 4

# Prints the releases on PyPI, the oldest first. Repackaged wheels (2.26.2.post1) are left out, because they hold the
# same release.
releases_on_pypi() {
  local package
  for package in nvidia-nccl-cu12 nvidia-nccl-cu13; do
    python3 -m pip index versions "$package" 2>/dev/null | sed -n 's/^Available versions: //p'
  done | tr -d ' ' | tr ',' '\n' | grep -E '^2\.(1[89]|[2-9][0-9])\.[0-9]+$' | sort -uV
}
mapfile -t releases < <(releases_on_pypi)
[[ ${#releases[@]} -gt 0 ]] ||
  fail "PyPI did not list the releases of NCCL" "is PyPI reachable, and pip 21.2 or later? real_nccl_matrix --releases all needs no network" 4
machines=dgx_h100,dgx_a100
[[ $which == all ]] || releases=("${releases[-1]}") machines=dgx_h100,dgx_b200

tools/setup/fetch_nccl.sh "${releases[@]}" || exit 4
printf '==> NCCL %s\n' "${releases[*]}"
verdict=0
"$build/tests/real_nccl_matrix" --releases "$(IFS=,; echo "${releases[*]}")" --machines "$machines" --doors all \
  --json "$build/nccl_releases.json" || verdict=$?
printf '\n%s, commit %s, %s cores, %s\n\n' "$(date +%F)" "$(git describe --always --dirty --abbrev=7 --exclude '*')" "$(nproc)" \
  "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
tests/real_nccl/results_table.py "$build/nccl_releases.json"
exit "$verdict"
