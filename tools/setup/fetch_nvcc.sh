#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches CUDA's compiler for a machine without the CUDA toolkit: unpacks NVIDIA's wheels of PyPI into the user's cache,
# where CMake searches for nvcc. Needs no GPU and no root. Safe to repeat: an nvcc of 12.8 or later on PATH or in the
# cache is used. An older nvcc cannot build for Blackwell, and CMake ignores it.
#   tools/setup/fetch_nvcc.sh      -> ~/.cache/dynamiccl/cuda-13.0/bin/nvcc (101 MB to download, 253 MB on disk)
set -euo pipefail

# CUDA 13.0 works with g++ 12 and builds for sm_75 to sm_121.
packages=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl"
target="$cache/cuda-13.0"

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 3
}

release_of() { # NVCC
  "$1" --version 2>/dev/null | sed -nE 's/.*release ([0-9]+\.[0-9]+).*/\1/p'
}

for nvcc in "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" "$target/bin/nvcc"; do
  [[ -x "$nvcc" ]] || continue
  release="$(release_of "$nvcc" || true)"
  if [[ -n "$release" && "$(printf '12.8\n%s\n' "$release" | sort -V | head -1)" == 12.8 ]]; then
    printf '==> nvcc: %s\n' "$nvcc"
    exit 0
  fi
  printf '==> nvcc: %s is passed over: release %s, older than 12.8\n' "$nvcc" "${release:-unknown}"
done
[[ "$(uname -m)" == x86_64 ]] || fail "these wheels are for x86-64" "install the CUDA Toolkit of this machine"
command -v unzip >/dev/null || fail "unzip is missing" "tools/setup/install.sh installs it"
mkdir -p "$cache"
# Unpacks beside the target and moves the folder at the end, so that an interrupted fetch leaves no incomplete compiler.
work="$(mktemp -d "$cache/fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
printf '==> nvcc: downloading %s (101 MB)\n' "${packages[*]}"
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work" "${packages[@]}" ||
  fail "the wheels could not be downloaded" "is PyPI reachable? an installed CUDA Toolkit of 12.8 or later does as well"
for wheel in "$work"/*.whl; do unzip -q -o "$wheel" -d "$work/unpacked"; done
chmod -R u+rwX "$work/unpacked"
find "$work/unpacked/nvidia/cu13" -path '*/bin/*' -type f -exec chmod +x {} +
"$work/unpacked/nvidia/cu13/bin/nvcc" --version >/dev/null || fail "the fetched nvcc does not start" "report this machine"
rm -rf "$target"
mv "$work/unpacked/nvidia/cu13" "$target"
printf '==> nvcc: %s\n' "$target/bin/nvcc"
