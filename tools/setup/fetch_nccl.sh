#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches NVIDIA's NCCL (library and headers) into the user's cache: the wheel nvidia-nccl-cu12 of PyPI, unpacked and not
# changed. Safe to repeat: what is there already is not fetched again.
#   tools/setup/fetch_nccl.sh 2.28.9      -> ~/.cache/dynamiccl/wheels/nccl-2.28.9/nvidia/nccl/{include,lib}
set -euo pipefail

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit "${3:-3}"
}

[[ $# -eq 1 && $1 =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
  fail "one NCCL version is needed, not '$*'" "for example: tools/setup/fetch_nccl.sh 2.28.9" 2
version=$1
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/wheels"
target="$cache/nccl-$version"

if [[ -f "$target/nvidia/nccl/lib/libnccl.so.2" ]]; then
  printf '==> NCCL %s: already in %s\n' "$version" "$target"
  exit 0
fi
command -v unzip >/dev/null || fail "unzip is missing" "tools/setup/install.sh installs it"
mkdir -p "$cache"
# Unpacked beside the target and moved at the end: a broken fetch leaves nothing that looks whole.
work="$(mktemp -d "$cache/fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
printf '==> NCCL %s: downloading the wheel nvidia-nccl-cu12 (100 to 300 MB)\n' "$version"
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work" \
  "nvidia-nccl-cu12==$version" || fail "NCCL $version could not be downloaded" "is that release on PyPI, and PyPI reachable?"
printf '==> NCCL %s: unpacking to %s\n' "$version" "$target"
unzip -q "$work"/*.whl -d "$work/unpacked"
[[ -f "$work/unpacked/nvidia/nccl/lib/libnccl.so.2" ]] || fail "the wheel holds no libnccl.so.2" "report this release"
rm -rf "$target"
mv "$work/unpacked" "$target"
printf '==> NCCL %s: done\n' "$version"
