#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds build/release: everything, or without LibTorch when DYNAMICCL_WITHOUT_TORCH is set.
# Safe to repeat. Extra arguments go to the build, for instance a target.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
torch=ON
[[ -z "${DYNAMICCL_WITHOUT_TORCH:-}" ]] || torch=OFF
# A LibTorch compile takes up to 1.5 GB: two at a time fit every machine that can train.
jobs="${DYNAMICCL_JOBS:-$(($(nproc) < 2 ? 1 : $(nproc)))}"

printf '==> configuring %s\n' "$root/build/release"
cmake -S "$root" --preset release -DDYNAMICCL_BUILD_TORCH=$torch >"$root/build-configure.log" 2>&1 ||
  { cat "$root/build-configure.log" >&2; exit 3; }
rm -f "$root/build-configure.log"
printf '==> building with %s jobs\n' "$jobs"
cmake --build "$root/build/release" --parallel "$jobs" -- "$@"
