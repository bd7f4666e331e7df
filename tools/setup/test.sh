#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is needed, builds and runs the tests, as many at a time as there are cores (DYNAMICCL_JOBS); what must
# run alone says so itself. Arguments go to ctest, for instance -L fast or -R LegalConfigs.
# What the tests need from the network (NCCL's wheels, nvcc, the text) is fetched once into the user's cache; tests whose
# data cannot be had are skipped visibly.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
"$root/tools/setup/install.sh"
# One release of each version of the tuner interface. Before the build: a test compiles against NVIDIA's header of 2.32.3.
"$root/tools/setup/fetch_nccl.sh" 2.32.3 2.28.9 2.24.3 2.22.3 2.21.5 ||
  printf '==> not all NCCL wheels: tests of the releases that are missing will be skipped\n'
"$root/tools/setup/fetch_nvcc.sh" ||
  printf '==> no nvcc: kernels are left out, their tests will be skipped\n'
"$root/tools/setup/build.sh"
"$root/tools/setup/fetch_shakespeare.sh" || printf '==> no text: tests on real text will be skipped\n'
printf '==> testing\n'
exec ctest --test-dir "$root/build/release" --output-on-failure --no-tests=error -j "${DYNAMICCL_JOBS:-$(nproc)}" -LE slow "$@"
