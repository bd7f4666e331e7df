#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is needed, builds, and runs the tests. As many tests run at a time as there are cores (DYNAMICCL_JOBS
# changes the number), except tests that are marked to run alone. Studies and benchmarks are left out, and so are long
# tests (label long: whole grids, every release, every line of the tour), which are counted at the end. With --all, as in
# CI, all are built and run.
#
#   tools/setup/test.sh [--all] [ctest's arguments]     for instance -L fast or -R LegalConfigs
#
# Files that the tests need from the network (NCCL's wheels, nvcc, the training text) are fetched once into the user's
# cache. A test whose files cannot be fetched is skipped, and the output says so.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
left_out='slow|long'
parts=(tests)
if [[ "${1:-}" == --all ]]; then
  left_out=slow
  parts=()
  shift
fi
"$root/tools/setup/install.sh"
# Fetches one release for each version of the tuner interface. This comes before the build, because a test compiles
# against NVIDIA's header of 2.32.3.
"$root/tools/setup/fetch_nccl.sh" 2.32.3 2.28.9 2.24.3 2.22.3 2.21.5 ||
  printf '==> not all NCCL wheels: tests of the releases that are missing will be skipped\n'
"$root/tools/setup/fetch_nvcc.sh" ||
  printf '==> no nvcc: kernels are left out, their tests will be skipped\n'
"$root/tools/setup/build.sh" "${parts[@]}"
"$root/tools/setup/fetch_shakespeare.sh" || printf '==> no text: tests on real text will be skipped\n'
printf '==> testing\n'
run=(ctest --test-dir "$root/build/release" --output-on-failure --no-tests=error -j "${DYNAMICCL_JOBS:-$(nproc)}")
[[ "$left_out" != slow ]] || exec "${run[@]}" -LE slow "$@"

# Number of long tests among those that the arguments select.
long="$(ctest --test-dir "$root/build/release" -N -L long -LE slow "$@" | sed -n 's/^Total Tests: //p')"
"${run[@]}" -LE "$left_out" "$@" |
  awk -v note="==> $long long tests and those of studies and benchmarks are left out; all of them: tools/setup/test.sh --all" -v long="$long" \
    '/^[0-9]+% tests passed/ && long > 0 { print note } { print; fflush() }'
