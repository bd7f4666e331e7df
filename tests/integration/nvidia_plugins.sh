#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds NVIDIA's example tuner and Inspector profiler from public source, and loads them unchanged into hostccl.
# usage: nvidia_plugins.sh FOLDER [PATH_TO_dynamiccl]
#   FOLDER   outside the source tree; receives NVIDIA's sources, CUDA's headers (from PyPI) and what is built.
#            A checkout of github.com/NVIDIA/nccl that already exists as FOLDER/nccl is used as it is.
# Needs a network, git, pip and gcc, but no GPU. The Inspector asks CUDA only for the number and the id of the device; a
# stand-in of five functions answers.
set -euo pipefail
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
dynamiccl="${2:-dynamiccl}"
[[ "$dynamiccl" != */* ]] || dynamiccl="$(realpath "$dynamiccl")"
cd "$folder"

[[ -d nccl ]] || git clone -q --depth 1 https://github.com/NVIDIA/nccl nccl
pip download -q --no-deps -d wheels nvidia-cuda-runtime-cu12==12.4.127 nvidia-cuda-nvcc-cu12==12.4.131
for wheel in wheels/*.whl; do python3 -m zipfile -e "$wheel" wheels; done
cuda="-Iwheels/nvidia/cuda_runtime/include -Iwheels/nvidia/cuda_nvcc/include"

cat >stand_in.c <<'C'
#include <string.h>
int cudaGetDevice(int* device) { *device = 0; return 0; }
const char* cudaGetErrorString(int error) { (void)error; return "none"; }
int cuGetErrorString(int error, const char** text) { (void)error; *text = "none"; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetUuid(void* uuid, int device) { memset(uuid, device + 1, 16); return 0; }
C
gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1 stand_in.c
gcc -shared -fPIC -Wl,-soname,libcudart.so.12 -o libcudart.so.12 stand_in.c

gcc -w -O2 -fPIC -shared -Inccl/plugins/tuner/example/nccl -o libnccl-tuner-example.so \
  nccl/plugins/tuner/example/plugin.c
inspector=nccl/plugins/profiler/inspector
echo 'extern "C" const char* get_git_version_info() { return "public source"; }' >version.cc
# shellcheck disable=SC2086,SC2046
g++ -w -std=c++17 -O2 -fPIC -shared $cuda -I$inspector -I$inspector/nccl -o libnccl-profiler-inspector.so \
  $(ls $inspector/inspector*.cc) $inspector/json.cc version.cc -L. -l:libcudart.so.12 -ldl -lpthread

echo "== example tuner: a CSV decides"
cat >tuner.csv <<'CSV'
allreduce,0,65536,tree,ll,2,-1,-1,-1,-1
allreduce,65537,4294967295,ring,simple,3,-1,-1,-1,-1
CSV
NCCL_TUNER_PLUGIN="$folder/libnccl-tuner-example.so" NCCL_TUNER_CONFIG_FILE="$folder/tuner.csv" \
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING \
  "$dynamiccl" bench all_reduce -b 16K -e 1M -f 64 -g 2 -n 3 --hostccl >tuner.log 2>&1
grep -q "TUNER/Plugin: Using Example (v6)" tuner.log
grep -q "AllReduce: 16384 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}" tuner.log
grep -q "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..2}" tuner.log
echo "ok"

echo "== Inspector: one JSON line a collective, timed by its kernels"
rm -rf inspector_lines && mkdir inspector_lines
LD_LIBRARY_PATH="$folder" NCCL_PROFILER_PLUGIN="$folder/libnccl-profiler-inspector.so" \
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_VERBOSE=1 NCCL_INSPECTOR_DUMP_DIR="$folder/inspector_lines" \
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 \
  "$dynamiccl" bench all_reduce -b 1M -e 4M -f 4 -g 2 -n 20 --hostccl | tee inspector.log
python3 - "$folder"/inspector_lines/* <<'PY'
import json, sys
lines = [json.loads(l)["coll_perf"] for f in sys.argv[1:] for l in open(f) if l.strip()]
assert len(sys.argv) == 3, "one file a rank"
assert lines and all(l["coll"] == "AllReduce" and l["coll_timing_source"] == "kernel_gpu" for l in lines)
assert all(l["coll_exec_time_us"] > 0 for l in lines)
for size in sorted({l["coll_msg_size_bytes"] for l in lines}):
    times = sorted(l["coll_exec_time_us"] for l in lines if l["coll_msg_size_bytes"] == size)
    print(f"{size} bytes: {len(times)} lines, median {times[len(times) // 2]} us, smallest {times[0]} us")
PY
echo "ok"
