#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests which nvcc is used and what is built with it (cmake/cuda_toolkit.cmake, tools/setup/fetch_nvcc.sh). Scripts
# replace nvcc. They report the architectures of a release and its errors for the kernels.

setup() {
  cd "$BATS_TEST_TMPDIR"
  mkdir -p project/tools/bench/cuda path cache
  touch project/tools/bench/cuda/device_kernels.cu
  cat >project/CMakeLists.txt <<PROJECT
cmake_minimum_required(VERSION 3.25)
project(toolkit NONE)
set(CMAKE_CXX_COMPILER g++)
include($DYNAMICCL_SOURCE/cmake/cuda_toolkit.cmake)
message(STATUS "with CUDA: \${DYNAMICCL_WITH_CUDA}, \${DYNAMICCL_KERNEL_ARCHITECTURES}, \${DYNAMICCL_NVCC_FLAGS}")
PROJECT
  export XDG_CACHE_HOME="$PWD/cache" CUDA_HOME="$PWD/nothing"
  cmake="$(command -v cmake)"
  export PATH="$PWD/path:/usr/bin:/bin"
}

nvcc_of() { # FILE RELEASE CODES [ERROR that it ends with]
  mkdir -p "$(dirname "$1")"
  cat >"$1" <<NVCC
#!/bin/sh
case "\$*" in
  --version) echo "Cuda compilation tools, release $2, V$2.1" ;;
  --list-gpu-code) printf 'sm_%s\n' $3 ;;
  --dryrun*) echo '#\$ TOP=/toolkit' >&2 ;;
  *) echo "\$*" >>"$PWD/compiled"; [ -z "${4:-}" ] || { echo "x.h(1): error: ${4:-}" >&2; exit 2; } ;;
esac
NVCC
  chmod +x "$1"
}

# Configures the project without the machine's own nvcc.
configure() {
  run "$cmake" -DCMAKE_IGNORE_PATH="/usr/local/cuda/bin;/usr/local/bin" -S project -B build "$@"
  echo "$output"
}

@test "all architectures are built by a release that knows them, tried once" {
  nvcc_of path/nvcc 13.0 "75 80 90 100 120"
  configure
  [[ "$output" == *"with CUDA: ON, 80;90;100;120, "*"-Werror"* ]]
  configure
  [[ "$output" == *"with CUDA: ON"* ]]
  [ "$(wc -l <compiled)" -eq 1 ]
}

@test "a release that no longer knows one leaves it out, and its warnings are no errors" {
  nvcc_of path/nvcc 14.1 "90 100 120"
  configure
  [[ "$output" == *"with CUDA: ON, 90;100;120, "* && "$output" != *-Werror* ]]
  [[ "$output" == *"none for 80, which release 14.1 does not know"* ]]
  configure -DDYNAMICCL_CUDA_ARCHITECTURES=80
  [ "$status" -eq 0 ]
  [[ "$output" == *"left out"*"builds for none of 80"* ]]
}

@test "an older nvcc is passed over for the fetched one, unless it is named" {
  nvcc_of path/nvcc 11.8 "80 90"
  configure
  [ "$status" -eq 0 ]
  [[ "$output" == *"path/nvcc is passed over: release 11.8"*"left out, there is no nvcc of 12.8 or later"* ]]
  nvcc_of cache/dynamiccl/cuda-13.0/bin/nvcc 13.0 "80 90 100 120"
  configure
  [[ "$output" == *"CUDA: $PWD/cache/dynamiccl/cuda-13.0/bin/nvcc, kernels for 80;90;100;120"* ]]
  configure -DDYNAMICCL_NVCC="$PWD/path/nvcc"
  [[ "$output" == *"CUDA: $PWD/path/nvcc, kernels for 80;90"* ]]
}

@test "a compiler that refuses the kernels is left out with its reason, and an error only when asked for" {
  nvcc_of path/nvcc 13.0 "80 90 100 120" "unsupported GNU version"
  configure
  [ "$status" -eq 0 ]
  [[ "$output" == *"left out, "*"unsupported GNU version"*"with CUDA: OFF"* ]]
  configure -DDYNAMICCL_BUILD_CUDA=ON
  [ "$status" -ne 0 ]
  [[ "$output" == *"unsupported GNU version"* && "$output" == *"hint:"* ]]
  nvcc_of path/nvcc 13.0 "80 90 100 120"
  configure
  [[ "$output" == *"with CUDA: ON"* ]]
  configure -DDYNAMICCL_BUILD_CUDA=OFF
  [[ "$output" == *"left out, DYNAMICCL_BUILD_CUDA is OFF"*"with CUDA: OFF"* ]]
}

@test "fetch_nvcc.sh keeps a fit nvcc and passes an older one over" {
  nvcc_of path/nvcc 12.8 "80"
  run "$DYNAMICCL_SOURCE/tools/setup/fetch_nvcc.sh"
  [ "$status" -eq 0 ]
  [ "$output" = "==> nvcc: $PWD/path/nvcc" ]
  nvcc_of path/nvcc 12.4 "80"
  nvcc_of cache/dynamiccl/cuda-13.0/bin/nvcc 13.0 "80"
  run "$DYNAMICCL_SOURCE/tools/setup/fetch_nvcc.sh"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "==> nvcc: $PWD/path/nvcc is passed over: release 12.4, older than 12.8" ]
  [ "${lines[1]}" = "==> nvcc: $PWD/cache/dynamiccl/cuda-13.0/bin/nvcc" ]
}
