#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds build/release. If DYNAMICCL_WITHOUT_TORCH is set, the programs that need LibTorch are left out.
# Safe to repeat. Extra arguments go to the build, for instance a target.
#
#   build.sh              programs, tests, studies and benchmarks
#   build.sh tests        programs and their tests, without studies and benchmarks
#   build.sh programs     only what is installed, which is all that the demo needs
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$root/build/release"
torch=ON
[[ -z "${DYNAMICCL_WITHOUT_TORCH:-}" ]] || torch=OFF
tests=ON
studies=ON
case "${1:-}" in
  programs) tests=OFF studies=OFF ;;
  tests) studies=OFF && shift ;; # what it builds is all that is configured
esac
# A compiler that includes LibTorch takes up to 2 GB. Two at a time fit every machine that can train.
jobs="${DYNAMICCL_JOBS:-$(nproc)}"

# CMake cannot change the compiler of a build folder: it would configure again and again, or mix two compilers' objects.
if [[ -f "$build/CMakeCache.txt" ]]; then
  was="$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")"
  is="$(command -v "${CXX:-c++}" || true)"
  if [[ -n "${CXX:-}" && -n "$is" && "$(readlink -f "$was")" != "$(readlink -f "$is")" ]] || [[ ! -x "$was" ]]; then
    printf 'error: %s was built with %s, which is not the compiler now (%s)\n  hint: rm -r %s%s\n' \
      "$build" "$was" "${is:-none}" "$build" "${CXX:+, or unset CXX}" >&2
    exit 3
  fi
fi

printf '==> configuring %s\n' "$build"
mkdir -p "$build"
log="$build/configure.log"
cmake -S "$root" --preset release -DDYNAMICCL_BUILD_TORCH=$torch -DDYNAMICCL_BUILD_TESTS=$tests -DDYNAMICCL_BUILD_BENCH=$studies \
  -DDYNAMICCL_BUILD_STUDIES=$studies >"$log" 2>&1 || { cat "$log" >&2; exit 3; }
printf '==> building with %s jobs\n' "$jobs"
cmake --build "$build" --parallel "$jobs" -- "$@"
