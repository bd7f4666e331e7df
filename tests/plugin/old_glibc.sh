#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Loads what tools/setup/build_portable.sh built with the C library of Ubuntu 20.04 (glibc 2.31), which it fetches into
# the user's cache: as plugin, preloaded, and as auditor. Exit 77: it cannot be had here, so nothing is shown.
#   tests/plugin/old_glibc.sh [folder of the objects]      default: build/portable/lib
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
objects="$(realpath -m "${1:-$root/build/portable/lib}")"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl"
package=libc6_2.31-0ubuntu9_amd64.deb
libc="$cache/focal/$package.unpacked"

skip() {
  printf 'skipped: %s\n' "$1"
  exit 77
}
[[ "$(uname -m)" == x86_64 ]] || skip "the package is for x86_64"
[[ -f "$objects/libdynamiccl.so" && -x "$objects/../tools/zig-cc" ]] || skip "run tools/setup/build_portable.sh first"
if [[ ! -d "$libc" ]]; then
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  curl -fsS --max-time 60 -o "$work/$package" "http://archive.ubuntu.com/ubuntu/pool/main/g/glibc/$package" ||
    skip "$package could not be fetched"
  mkdir -p "$cache/focal"
  dpkg-deb -x "$work/$package" "$work/unpacked"
  mv "$work/unpacked" "$libc"
fi

loader="$(find "$libc/lib" -name 'ld-2.31.so')"
program="$(mktemp)"
"$objects/../tools/zig-cc" -o "$program" "$root/tests/plugin/loads_object.c" -ldl
run() { "$loader" --library-path "$(dirname "$loader")" "$@"; }

run "$program" "$objects/libdynamiccl.so" ncclTunerPlugin_v6
run "$program" "$objects/libdynamiccl-audit.so" la_symbind64
# The loader's own options: the shell must not load them too.
run --preload "$objects/libdynamiccl.so" "$program" "$objects/libdynamiccl.so" ncclAllReduce
LD_PRELOAD='' run --preload "$objects/libdynamiccl.so" --audit "$objects/libdynamiccl-audit.so" \
  "$program" "$objects/libdynamiccl.so" ncclAllReduce
rm -f "$program"
