#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches NVIDIA's NCCL (library and headers) into the user's cache. It comes from the wheel nvidia-nccl-cu12 of PyPI, or
# nvidia-nccl-cu13 if a release has only that one, and is unpacked without changes. Safe to repeat: a release in the
# cache is not fetched again. Stops at the first release that cannot be fetched.
#   tools/setup/fetch_nccl.sh 2.28.9 2.32.3     -> ~/.cache/dynamiccl/wheels/nccl-2.28.9/nvidia/nccl/{include,lib}, ...
set -euo pipefail

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit "${3:-3}"
}

download() { # VERSION FOLDER
  local package
  for package in nvidia-nccl-cu12 nvidia-nccl-cu13; do
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$2" "$package==$1" && return
  done
  return 1
}

fetch() { # VERSION
  local target="$cache/nccl-$1"
  if [[ -f "$target/nvidia/nccl/lib/libnccl.so.2" ]]; then
    printf '==> NCCL %s: already in %s\n' "$1" "$target"
    return
  fi
  # Unpacks beside the target and moves the folder at the end, so that an interrupted fetch leaves no incomplete release.
  work="$(mktemp -d "$cache/fetch.XXXXXX")"
  printf '==> NCCL %s: downloading the wheel (100 to 300 MB)\n' "$1"
  download "$1" "$work" || fail "NCCL $1 could not be downloaded" "is that release on PyPI, and PyPI reachable?"
  printf '==> NCCL %s: unpacking to %s\n' "$1" "$target"
  unzip -q "$work"/*.whl -d "$work/unpacked"
  [[ -f "$work/unpacked/nvidia/nccl/lib/libnccl.so.2" ]] || fail "the wheel holds no libnccl.so.2" "report this release"
  rm -rf "$target"
  mv "$work/unpacked" "$target"
  rm -rf "$work"
  printf '==> NCCL %s: done\n' "$1"
}

[[ $# -gt 0 ]] || fail "an NCCL version is needed" "for example: tools/setup/fetch_nccl.sh 2.28.9" 2
for version in "$@"; do
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
    fail "'$version' is no NCCL version" "for example: tools/setup/fetch_nccl.sh 2.28.9" 2
done
command -v unzip >/dev/null || fail "unzip is missing" "tools/setup/install.sh installs it"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/wheels"
work=
trap '[[ -z "$work" ]] || rm -rf "$work"' EXIT
mkdir -p "$cache"
for version in "$@"; do fetch "$version"; done
