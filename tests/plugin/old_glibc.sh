#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Loads the objects of tools/setup/build_portable.sh with two C libraries: one older than Rocky 8's glibc 2.28, and
# Ubuntu 20.04's glibc 2.31. It fetches them into the user's cache. It loads the objects as a plugin, preloaded and as
# an auditor. Exit code 77: the libraries or the objects are not available, so nothing was tested.
#   tests/plugin/old_glibc.sh [folder of the objects]      default: build/portable/lib
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
objects="$(realpath -m "${1:-$root/build/portable/lib}")"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/glibc"
packages=(libc6_2.27-3ubuntu1_amd64.deb libc6_2.31-0ubuntu9_amd64.deb)

skip() {
  printf 'skipped: %s\n' "$1"
  exit 77
}
[[ "$(uname -m)" == x86_64 ]] || skip "the packages are for x86_64"
[[ -f "$objects/libdynamiccl.so" && -x "$objects/../tools/zig-cc" ]] || skip "run tools/setup/build_portable.sh first"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

fetch() { # package
  [[ ! -d "$cache/$1.unpacked" ]] || return 0
  curl -fsS --max-time 60 -o "$work/$1" "http://archive.ubuntu.com/ubuntu/pool/main/g/glibc/$1" ||
    skip "$1 could not be fetched"
  mkdir -p "$cache"
  dpkg-deb -x "$work/$1" "$work/$1.unpacked"
  mv "$work/$1.unpacked" "$cache/$1.unpacked"
}

# The object must use its own operator new: it neither exports one to the program nor imports one from it.
for object in libdynamiccl.so libdynamiccl-audit.so; do
  foreign="$(nm -D "$objects/$object" | awk '{print $NF}' | grep -E '^_Z(n|d)[aw]' || true)"
  [[ -z "$foreign" ]] || { printf 'error: %s shares with the program: %s\n' "$object" "$foreign" >&2; exit 1; }
done
nm -D --defined-only "$objects/libdynamiccl.so" | awk '$NF !~ /^(nccl|dynamiccl)/ {print "error: exported: " $NF; bad = 1} END {exit bad}'

program="$work/loads_object"
"$objects/../tools/zig-cc" -o "$program" "$root/tests/plugin/loads_object.c" -ldl

for package in "${packages[@]}"; do
  fetch "$package"
  loader="$(find "$cache/$package.unpacked/lib" -name 'ld-2.*.so')"
  run=("$loader" --library-path "$(dirname "$loader")" "$program")
  "${run[@]}" "$objects/libdynamiccl.so" ncclTunerPlugin_v6
  "${run[@]}" "$objects/libdynamiccl-audit.so" la_symbind64
  LD_PRELOAD="$objects/libdynamiccl.so" "${run[@]}" "$objects/libdynamiccl.so" ncclAllReduce
  LD_PRELOAD="$objects/libdynamiccl.so" LD_AUDIT="$objects/libdynamiccl-audit.so" \
    "${run[@]}" "$objects/libdynamiccl.so" ncclAllReduce
done
