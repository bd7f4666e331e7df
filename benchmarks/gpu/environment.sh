# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of first_hour.sh
# SPDX-License-Identifier: Apache-2.0
# Finds what the experiments need: a GPU, CUDA's headers and runtime, and NCCL releases. Builds the programs for each
# release. Sourced by first_hour.sh, which sets work, here and versions.

# Runs pip and prints its output without noise.
fetch_wheel() {
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$1" "$2" 2>"$work/pip.log"
}

unpack_wheel() { # REQUIREMENT FOLDER
  local folder="$2" part="$2.part"
  [[ -d "$folder" ]] && return
  rm -rf "$part" && mkdir -p "$part"
  echo "fetching $1"
  fetch_wheel "$part" "$1" || { echo "error: $1 could not be downloaded (see $work/pip.log)" >&2; return 1; }
  (cd "$part" && python3 -m zipfile -e ./*.whl . && rm -f ./*.whl)
  mv "$part" "$folder"
}

# The compiler itself searches this folder, after the C++ library's headers. With -isystem it would come before them,
# and they would not find the C library's headers.
is_searched_anyway() { [[ "$(readlink -f "$1")" == /usr/include ]]; } # FOLDER

# Sets cuda_include (an array of -isystem options) and cuda_lib. Prefers a toolkit, unless --wheels was given.
find_cuda() {
  local root=""
  if [[ -n "$want_wheels" ]]; then
    use_cuda_wheels
    return
  fi
  if command -v nvcc >/dev/null; then
    root="$(nvcc --dryrun -x cu -c /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p' | head -1)"
  fi
  for root in "$root" "${CUDA_HOME:-}" /usr/local/cuda; do
    for cuda_lib in "$root/lib64/libcudart_static.a" "$root/lib/libcudart_static.a"; do
      if [[ -n "$root" && -f "$root/include/cuda_runtime_api.h" && -e "$cuda_lib" ]]; then
        cuda_include=()
        is_searched_anyway "$root/include" || cuda_include=(-isystem "$root/include")
        echo "CUDA runtime: $root"
        return
      fi
    done
  done
  use_cuda_wheels
}

# Uses the wheels of CUDA 12, which run on every driver since 525.
use_cuda_wheels() {
  unpack_wheel nvidia-cuda-runtime-cu12==12.9.79 "$work/wheels/cuda-runtime" || return 3
  unpack_wheel nvidia-cuda-nvcc-cu12==12.9.86 "$work/wheels/cuda-nvcc" || return 3
  unpack_wheel nvidia-cuda-cccl-cu12==12.9.27 "$work/wheels/cuda-cccl" || return 3
  cuda_include=(-isystem "$work/wheels/cuda-runtime/nvidia/cuda_runtime/include"
    -isystem "$work/wheels/cuda-nvcc/nvidia/cuda_nvcc/include"
    -isystem "$work/wheels/cuda-cccl/nvidia/cuda_cccl/include")
  cuda_lib="$work/wheels/cuda-runtime/nvidia/cuda_runtime/lib/libcudart_static.a"
  echo "CUDA runtime: wheels of PyPI"
}

# Prints the folder of the NCCL among python3's packages, which PyTorch brings. release_of prints the release in its
# header.
installed_nccl_folder() { python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null; }
release_of() { # FOLDER
  sed -nE 's/^#define NCCL_(MAJOR|MINOR|PATCH) +([0-9]+).*/\2/p' "$1/include/nccl.h" 2>/dev/null | head -3 | paste -sd.
}

# Prints the folder of the shared CUDA runtime. It is among python3's packages, which PyTorch uses, or else beside nvcc,
# or else where the loader finds it.
cudart_folder() {
  local folder packages
  packages="$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)"
  for folder in "$packages"/cu13/lib "$packages"/cuda_runtime/lib "${CUDA_HOME:-/usr/local/cuda}"/lib64 "${CUDA_HOME:-/usr/local/cuda}"/lib; do
    if compgen -G "$folder/libcudart.so*" >/dev/null; then echo "$folder" && return; fi
  done
}

# Prints the releases to test if none is named: the installed ones, so that nothing must be downloaded.
default_versions() {
  local folder
  folder="$(installed_nccl_folder)"
  if [[ -n "$folder" && -e "$folder/lib/libnccl.so.2" ]]; then release_of "$folder"; else echo "2.30.7 2.32.3"; fi
}

# Prints the folder of a release: installed, fetched earlier by tools/setup/fetch_nccl.sh, or fetched by this script.
nccl_folder() { # VERSION
  local installed
  installed="$(installed_nccl_folder)"
  if [[ -n "$installed" && "$(release_of "$installed")" == "$1" ]]; then echo "$installed" && return; fi
  local cached="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/wheels/nccl-$1/nvidia/nccl"
  if [[ -e "$cached/lib/libnccl.so.2" ]]; then echo "$cached"; else echo "$work/wheels/nccl-$1/nvidia/nccl"; fi
}

at_least() { [[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" == "$2" ]]; } # VERSION MINIMUM

build_for() { # VERSION
  local nccl call=all_reduce_plain
  nccl="$(nccl_folder "$1")"
  [[ -e "$nccl/lib/libnccl.so.2" ]] || unpack_wheel "nvidia-nccl-cu12==$1" "$work/wheels/nccl-$1" || return 3
  if at_least "$1" 2.31.0; then call=all_reduce_config; fi
  g++ -std=c++20 -O1 -Wall -Wextra -I"$here" "${cuda_include[@]}" -isystem "$nccl/include" -o "$work/rank_program-$1" \
    "$here/rank_program.cc" "$here/options.cc" "$here/$call.cc" "$nccl/lib/libnccl.so.2" "$cuda_lib" \
    -Wl,-rpath,"$nccl/lib" -ldl -lrt -pthread
}

build_all() {
  local version
  command -v g++ >/dev/null || { echo "error: g++ is missing" >&2; return 3; }
  find_cuda || return 3
  g++ -std=c++20 -O1 -Wall -Wextra -fPIC -shared -fvisibility=hidden -o "$work/libprobe_plugin.so" \
    "$here/probe_plugin.cc" || return 3
  for version in "${versions[@]}"; do
    build_for "$version" || return 3
    echo "built for NCCL $version"
  done
}

# Prints name and driver of the GPUs, or nothing without a GPU. In a rehearsal there is a substitute.
describe_gpus() {
  if [[ ${#rehearsal[@]} -gt 0 ]]; then echo "no GPU: a rehearsal, nothing was measured" && return; fi
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
}
