#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the ZeRO trainer for CUDA against python3's PyTorch, and trains every stage on two ranks over the real NCCL.
# Compares the stages with each other and with the same training on the CPU over hostccl. README.md describes it.
#   zero_on_cuda.sh --home BUILD [-o FOLDER] [--include FOLDER] [--steps 20] [--data TEXT] [--limit SECONDS]
#                   [--cuda-program FILE --cpu-program FILE]      programs that are built already
# Exit codes: 0 all equal within tolerance, 1 not, 2 usage, 3 no GPU or something needed is missing.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
work=out/zero_on_cuda home="" include="" steps=20 data="" limit_s=120 cuda_program="" cpu_program=""

usage() {
  sed -n '5,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || usage
  case "$1" in
    -o) work="$2" ;;
    --home) home="$2" ;;
    --include) include="$2" ;;
    --steps) steps="$2" ;;
    --data) data="$2" ;;
    --limit) limit_s="$2" ;;
    --cuda-program) cuda_program="$2" ;;
    --cpu-program) cpu_program="$2" ;;
    *) usage ;;
  esac
  shift 2
done
[[ -z "$home" ]] || home="$(readlink -f "$home")"
[[ -n "$home" && -e "$home/lib/hostccl/libnccl.so.2" ]] ||
  { echo "error: no build with lib/hostccl/libnccl.so.2 in --home" >&2; usage; }
mkdir -p "$work" && work="$(cd "$work" && pwd)" || exit 3
want_wheels="" rehearsal=()
# shellcheck source=benchmarks/gpu/environment.sh
source "$here/environment.sh"
if [[ -n "$include" ]] && is_searched_anyway "$include"; then include=""; fi

# Finds what a build against a PyTorch needs: its headers and libraries, CUDA's headers, and NCCL.
find_torch() {
  torch="$(python3 -c 'import torch, pathlib; assert torch.version.cuda; print(pathlib.Path(torch.__file__).parent)')" ||
    { echo "error: python3 has no PyTorch built for CUDA" >&2; return 3; }
  find_cuda || return 3
  nccl="$(installed_nccl_folder)"
  [[ -n "$nccl" ]] || { echo "error: no NCCL among python3's packages" >&2; return 3; }
}

# Compiles without CMake: PyTorch's own package file wants all of the toolkit's libraries, which a machine may not have.
# shellcheck disable=SC2317  # called by xargs
compile() { # SOURCE
  local object="$work/objects/${1//\//_}.o"
  g++ -std=c++20 -O2 -DFMT_HEADER_ONLY=1 -I"$root" -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
    "${cuda_include[@]}" ${include:+-isystem "$include"} -ffp-contract=off -c "$root/$1" -o "$object" 2>"$object.log" || { cat "$object.log" >&2; return 1; }
}

build_programs() {
  local shared=() source objects=() libraries
  find_torch || return 3
  mkdir -p "$work/objects"
  while IFS= read -r source; do shared+=("$source"); done < <(cd "$root" && find zero_workloads src/base -name '*.cc' -not -path '*/torch_backend/*' \
    -not -name fmt_compiled_once.cc | sort)
  export -f compile
  export root torch work include
  # shellcheck disable=SC2016  # expanded by the inner shell
  printf '%s\n' "${shared[@]}" | cuda_words="$(declare -p cuda_include)" xargs -P "$(nproc)" -I{} \
    bash -c 'eval "$cuda_words"; compile {}' || return 3
  for source in "${shared[@]}"; do
    [[ "$source" == zero_workloads/device/device_*.cc ]] || objects+=("$work/objects/${source//\//_}.o")
  done
  libraries=(-L"$torch/lib" "-Wl,-rpath,$torch/lib" -ltorch -ltorch_cpu -lc10 -ldl -lrt -pthread)
  g++ -o "$work/zero_cuda" "${objects[@]}" "$work/objects/zero_workloads_device_device_cuda.cc.o" -Wl,--no-as-needed "${libraries[@]}" \
    -ltorch_cuda -lc10_cuda -L"$(cudart_folder)" -Wl,-rpath,"$(cudart_folder)" "$(cudart_folder)"/libcudart.so.1[23] \
    "$nccl/lib/libnccl.so.2" -Wl,-rpath,"$nccl/lib" || return 3
  g++ -o "$work/zero_cpu" "${objects[@]}" "$work/objects/zero_workloads_device_device_host.cc.o" -Wl,--no-as-needed "${libraries[@]}" \
    "$home/lib/hostccl/libnccl.so.2" -Wl,-rpath,"$home/lib/hostccl" || return 3
  cuda_program="$work/zero_cuda" cpu_program="$work/zero_cpu"
}

# NCCL takes each rank for a host of its own, so two ranks can share a GPU.
train() { # NAME PROGRAM STAGE
  local rank port processes=() code=0
  # Binds the port without listening until its input ends. So the system gives the port to no other program before rank
  # 0 listens on it.
  coproc reserved_port {
    python3 -c 'import socket, sys; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()'
  }
  read -r port <&"${reserved_port[0]}"
  for rank in 0 1; do
    timeout -k 5 "$limit_s" env RANK="$rank" WORLD_SIZE=2 LOCAL_RANK="$rank" LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
      NCCL_HOSTID="zero_$rank" NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo NVIDIA_TF32_OVERRIDE=0 \
      "$2" train --stage "$3" --steps "$steps" --layers 2 --hidden 64 --heads 2 --sequence 64 --batch 4 --seed 7 --data "$data" \
      --json "$work/$1_$rank.jsonl" >"$work/$1_$rank.log" 2>&1 &
    processes+=($!)
  done
  for rank in 0 1; do wait "${processes[rank]}" || code=$?; done
  # shellcheck disable=SC2154 # bash sets it for the coprocess
  kill "$reserved_port_PID"
  wait "$reserved_port_PID" 2>/dev/null
  [[ "$code" -eq 0 ]] || echo "  $1: exit code $code: $(cat "$work/$1"_*.log | grep -m1 -iE 'error|warn')"
}

if [[ -z "$cuda_program" || -z "$cpu_program" ]]; then
  [[ "$(describe_gpus | grep -c .)" -gt 0 ]] || { echo "error: no GPU here (nvidia-smi lists none)" >&2; exit 3; }
  build_programs || { echo "error: the trainer could not be built" >&2; exit 3; }
fi
if [[ -z "$data" ]]; then
  data="$work/text.txt"
  cat "$root"/docs/*.md >"$data"
fi
rm -f "$work"/*.jsonl
for stage in 0 1 2 3; do
  echo "training stage $stage"
  train "cuda_$stage" "$cuda_program" "$stage"
done
train cpu_0 "$cpu_program" 0
python3 "$here/compare_losses.py" "$work" | tee "$work/losses.txt"
exit "${PIPESTATUS[0]}"
