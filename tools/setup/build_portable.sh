#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the objects that are loaded into jobs, libdynamiccl.so and libdynamiccl-audit.so, for old machines. They load
# with glibc 2.17 (CentOS 7) and later, so also on Rocky 8 and Ubuntu 18.04, whatever glibc this machine has. The
# compiler is zig's clang from PyPI, kept in the user's cache. The C++ library is linked statically. Safe to repeat.
#   tools/setup/build_portable.sh [folder]         default: build/portable; the objects are in folder/lib
#   DYNAMICCL_PORTABLE_MACHINE=aarch64             for another machine than this one (GH200 and GB200 hosts): default folder
#                                                  build/portable-aarch64, with same_answers, which tests/portable runs
#   DYNAMICCL_PORTABLE_GLIBC=2.28                  another release of glibc
#   DYNAMICCL_JOBS                                 how many compilers at once (default: the cores)
set -euo pipefail

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 3
}

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
machine="${DYNAMICCL_PORTABLE_MACHINE:-$(uname -m)}"
targets=(dynamiccl_preload dynamiccl_audit)
default_folder="$root/build/portable"
if [[ $machine != "$(uname -m)" ]]; then
  targets+=(same_answers)
  default_folder+="-$machine"
fi
folder="${1:-$default_folder}"
glibc="${DYNAMICCL_PORTABLE_GLIBC:-2.17}"
[[ $glibc =~ ^2\.[0-9]+$ ]] || fail "DYNAMICCL_PORTABLE_GLIBC=$glibc is no release of glibc" "for example 2.17"
[[ $machine == x86_64 || $machine == aarch64 ]] || fail "no portable objects for $machine" "x86_64 or aarch64"
target="$machine-linux-gnu.$glibc"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl"
zig="$cache/zig"
release=0.17.1 # of ziglang: a fixed compiler gives the same object everywhere

if ! "$zig/bin/python3" -m ziglang version 2>/dev/null | grep -qx "$release"; then
  printf '==> fetching ziglang %s from PyPI into %s\n' "$release" "$zig"
  python3 -m venv "$zig" || fail "no Python virtual environment in $zig" "is python3-venv installed?"
  "$zig/bin/python3" -m pip install -q --disable-pip-version-check "ziglang==$release" ||
    fail "ziglang $release could not be installed" "is PyPI reachable?"
fi

mkdir -p "$folder/tools" "$folder/headers"
for tool in cc c++ ar ranlib; do
  of_target=''
  case $tool in cc | c++) of_target="-target $target" ;; esac
  # shellcheck disable=SC2016 # $@ is the tool's own
  printf '#!/bin/sh\nexec "%s/bin/python3" -m ziglang %s %s "$@"\n' "$zig" "$tool" "$of_target" >"$folder/tools/zig-$tool"
  chmod +x "$folder/tools/zig-$tool"
done
for header in fmt tl toml++ xxhash.h nlohmann spdlog CLI; do
  for at in /usr/include /usr/local/include; do
    [[ ! -e "$at/$header" ]] || ln -sfn "$at/$header" "$folder/headers/$header"
  done
done

printf '==> building for %s in %s\n' "$target" "$folder"
cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_SYSTEM_PROCESSOR="$machine" -DCMAKE_TOOLCHAIN_FILE="$root/cmake/toolchains/portable_linux.cmake" \
  -DDYNAMICCL_PORTABLE_TOOLS="$folder/tools" -DDYNAMICCL_PORTABLE_HEADERS="$folder/headers" \
  -DDYNAMICCL_BUILD_TORCH=OFF -DDYNAMICCL_BUILD_TESTS=OFF >/dev/null
cmake --build "$folder" --parallel "${DYNAMICCL_JOBS:-$(nproc)}" --target "${targets[@]}"
strip_program="strip"
[[ $machine == "$(uname -m)" ]] || strip_program="llvm-strip" # Debian's strip handles only its own machine
for object in libdynamiccl.so libdynamiccl-audit.so; do
  # Removes zig's debug information, which is nine tenths of the object and contains the name of this folder.
  ! command -v "$strip_program" >/dev/null || "$strip_program" "$folder/lib/$object"
  needs="$(objdump -T "$folder/lib/$object" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)"
  printf '==> %s needs %s at most\n' "$folder/lib/$object" "$needs"
done
