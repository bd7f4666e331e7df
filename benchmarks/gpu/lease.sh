#!/usr/bin/env bash
# shellcheck disable=SC2030,SC2031  # what a subshell sets is meant for it alone
# SPDX-License-Identifier: Apache-2.0
# Runs by one command all of this folder that needs a GPU, on a bare machine that is lent for minutes. See README.md.
#   lease.sh -o FOLDER --home CARRIED [--only "machine steps"] [--seconds 1440] [--scale 1] [--archive FILE] [--rehearse FILE]
# Each part ends after its own time limit (times --scale), and all parts end after --seconds. The archive
# (FOLDER/results.tgz) is written again after each part. Without --seconds, all parts have their full time, and the
# whole run ends within 25 minutes.
# Exit codes: 0 every part ran to its end, 1 some did not (the archive has the others), 2 usage, 3 something needed is
# missing.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="" home="" seconds=1440 scale=1 inner="" archive="" rehearse=""
# The most valuable parts come first, because the last ones are cut when time runs out. All parts take 1050 s at most.
parts=(machine device tables record steps zero measure newest hour wide adaptive)
declare -A seconds_of=([machine]=20 [device]=30 [tables]=40 [record]=50 [steps]=170 [wide]=40 [adaptive]=420 [zero]=60 [measure]=100 [newest]=60 [hour]=60)

usage() {
  sed -n '5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || usage
  case "$1" in
    -o) out="$2" ;;
    --home) home="$2" ;;
    --only) read -ra parts <<<"$2" ;;
    --seconds) seconds="$2" ;;
    --scale) scale="$2" ;;
    --archive) archive="$2" ;;
    --rehearse) rehearse="$2" ;;
    --inner) inner="$2" ;;
    *) usage ;;
  esac
  shift 2
done
[[ -n "$out" && -n "$home" ]] || usage
for part in "${parts[@]}"; do
  [[ -n "${seconds_of[$part]:-}" ]] || { echo "error: no part '$part'; there are: ${!seconds_of[*]}" >&2; usage; }
done
home="$(readlink -f "$home")"
[[ -x "$home/bin/dynamiccl" ]] || { echo "error: no bin/dynamiccl in '$home'" >&2; exit 3; }
mkdir -p "$out/work" && out="$(cd "$out" && pwd)" || exit 3
work="$out/work" want_wheels=""
# shellcheck source=benchmarks/gpu/environment.sh
source "$here/environment.sh"
# shellcheck source=benchmarks/gpu/ranks.sh
source "$here/ranks.sh"

# A rehearsal (README.md) has one release of NCCL over the CUDA stand-in. PyTorch's jobs are small there and run over
# hostccl. Still, their gradients are larger than DDP's first bucket of 1 MiB. With a single call per step, steps could
# not be told apart, and `ab` could not take turns.
rehearsed=() job_options=() no_hostccl=(--no-hostccl) checks=1
rehearsed_release=""
if [[ -n "$rehearse" ]]; then
  rehearse="$(readlink -f "$rehearse")"
  read_rehearsal "$rehearse" || exit 3
  rehearsed=(--rehearse "$rehearse") job_options=(--backend dynamiccl --width 128 --layers 4 --batch 1 --sequence 16 --steps 120) no_hostccl=()
  checks=0 # they run on the device
  rehearsed_release="$(release_of "$(dirname "$(sed -nE 's/^LD_PRELOAD=.*:([^:]*)\/libnccl\.so\.2$/\1/p' "$rehearse")")")"
  export PYTHONPATH="$home/lib/python${PYTHONPATH:+:$PYTHONPATH}"
fi
scaled() { awk -v s="$1" -v f="$scale" 'BEGIN { print int(s * f) }'; } # SECONDS
not_rehearsed() { echo "not rehearsed: $1"; } # REASON

# A carried NCCL is unpacked where first_hour.sh looks for fetched releases. Sets carried_release and carried_nccl, or
# leaves them empty if there is none.
[[ -n "$rehearse" ]] || export XDG_CACHE_HOME="${LEASE_CACHE:-/tmp/dynamiccl_lease}"
carried_release="" carried_nccl=""
find_carried_nccl() {
  local archive folder
  for archive in "$home"/nccl-*.tar.xz; do
    [[ -e "$archive" ]] || return 0
    carried_release="$(basename "$archive" .tar.xz)" && carried_release="${carried_release#nccl-}"
    folder="$XDG_CACHE_HOME/dynamiccl/wheels/nccl-$carried_release"
    [[ -d "$folder" ]] || { mkdir -p "$folder" && tar -xJf "$archive" -C "$folder"; }
    carried_nccl="$folder/nvidia/nccl"
  done
}

# Under MPS, ranks in several processes run on a GPU at the same time. Without MPS, the GPU gives each process time
# slices. MPS is a process of this user and changes no setting of the GPU. A killed job may leave MPS unusable, so each
# job gets a fresh one.
fresh_mps() {
  [[ -z "$rehearse" ]] || return 0
  export CUDA_MPS_PIPE_DIRECTORY="$XDG_CACHE_HOME/mps" CUDA_MPS_LOG_DIRECTORY="$XDG_CACHE_HOME/mps"
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
  stop_mps
  if command -v nvidia-cuda-mps-control >/dev/null && timeout 20 nvidia-cuda-mps-control -d; then
    trap stop_mps EXIT
  else
    echo "no MPS here: processes take turns"
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  fi
}
# Ends the daemon of this folder and its servers, and no other daemon of this machine.
stop_mps() {
  local servers
  [[ -e "$CUDA_MPS_PIPE_DIRECTORY/control" ]] || return 0
  servers="$(echo get_server_list | timeout 10 nvidia-cuda-mps-control 2>/dev/null | grep -E '^[0-9]+$')"
  echo 'quit -t 2' | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  # shellcheck disable=SC2086  # numbers of processes
  [[ -z "$servers" ]] || { sleep 1 && kill -9 $servers 2>/dev/null; }
  rm -rf "$CUDA_MPS_PIPE_DIRECTORY" && mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
}

# There are two ways for ranks to share a GPU: as separate hosts over sockets or, from 2.30 on, as one host over the
# GPU's memory.
over_sockets() { export NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo; }
over_memory() { export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0; }

# Prints the library path for programs of the build. `dynamiccl` starts the ranks.
libraries() { echo "${1:+$1/lib:}$(cudart_folder):$home/lib/carried:${LD_LIBRARY_PATH:-}"; } # [NCCL]

part_machine() {
  describe_gpus
  nvidia-smi topo -m 2>/dev/null
  nproc
  lscpu | grep 'Model name'
  uname -r
  python3 -c 'import torch; print("PyTorch", torch.__version__, "NCCL", torch.cuda.nccl.version())'
  g++ --version | head -1
  command -v nvidia-cuda-mps-control || echo "no MPS"
  echo "carried NCCL: ${carried_release:-none}"
}

# Tests our programs with the CUDA runtime: copies, kernels that make and check data, background loads.
part_device() {
  if [[ -n "$rehearse" ]]; then not_rehearsed "kernels do not run" && return; fi
  LD_LIBRARY_PATH="$(libraries)" "$home/tests/gpu_test"
}

# Records NCCL's topology, cost tables and choices on this machine, for a comparison with those of the stand-in.
part_tables() {
  local nccl release collective code=0
  over_sockets
  g++ -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -o "$work/libprobe_plugin.so" "$here/probe_plugin.cc" || return 1
  for nccl in "$([[ -n "$rehearse" ]] || installed_nccl_folder)" "$carried_nccl" "${rehearse:+rehearsed}"; do
    [[ -n "$nccl" ]] || continue
    release="${rehearsed_release:-$(release_of "$nccl")}"
    for collective in all_reduce all_gather reduce_scatter; do
      timeout -k 5 "$(scaled 40)" env LD_LIBRARY_PATH="$(libraries "$nccl")" ${rehearsal_preload:+LD_PRELOAD="$rehearsal_preload"} "${rehearsal[@]}" \
        NCCL_TUNER_PLUGIN="$work/libprobe_plugin.so" \
        PROBE_TABLE="$work/table-$release-$collective" NCCL_TOPO_DUMP_FILE="$work/topology-$release.xml" NCCL_DEBUG=INFO \
        NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING NCCL_DEBUG_FILE="$work/nccl-$release-$collective-%p.log" \
        "$home/bin/dynamiccl" bench $collective --no-hostccl -g 2 -b 8 -e 256M -f 8 -n 1 -w 1 -c $checks --rounds 1 --singles 0 || code=1
    done
  done
  return $code
}

# Records an unchanged job of PyTorch.
part_record() {
  over_sockets
  LD_LIBRARY_PATH="$(libraries)"
  export LD_LIBRARY_PATH
  local wrap
  for wrap in ddp fsdp2; do
    DYNAMICCL_TIMES=all "$home/bin/dynamiccl" record "${no_hostccl[@]}" -n 2 -o "$work/$wrap.ctrace" \
      -- python3 "$here/torch_steps.py" --wrap "$wrap" --steps 60 "${job_options[@]}" || return
  done
}

# Compares a step under NCCL's choice with steps under other choices. They take turns within one job.
compare_steps() { # NAME RANKS WRAP STEPS SETTING... [OPTION OF THE JOB...]
  local name="$1" ranks="$2" wrap="$3" steps="$4" settings=() code
  shift 4
  while [[ $# -gt 0 && "$1" != --* ]]; do settings+=("$1") && shift; done
  fresh_mps
  timeout -k 5 "$(scaled 60)" "$home/bin/dynamiccl" ab default "${settings[@]}" -n "$ranks" "${no_hostccl[@]}" --json "$work/ab-$name.json" \
    -- python3 "$here/torch_steps.py" --wrap "$wrap" --steps "$steps" --json "$work/steps-$name.json" "$@" "${job_options[@]}"
  code=$?
  echo "-- $name: exit code $code"
  return $code
}

# Prints what NCCL logs about a short job: its rings and choices.
log_choices() { # NAME RANKS
  local name="$1" ranks="$2"
  fresh_mps
  timeout -k 5 "$(scaled 40)" env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING NCCL_DEBUG_FILE="$work/choices-$name-%p.log" \
    "$home/bin/dynamiccl" run -n "$ranks" "${no_hostccl[@]}" --mode off -- python3 "$here/torch_steps.py" --wrap ddp --steps 20 "${job_options[@]}"
  local code=$?
  echo "-- $name, $ranks ranks, choices: exit code $code"
  return $code
}

# LD_PRELOAD loads the carried release before the one of PyTorch.
part_steps() {
  local code=0
  LD_LIBRARY_PATH="$(libraries)"
  export LD_LIBRARY_PATH
  if [[ -n "$carried_nccl" ]]; then
    (
      over_memory
      export LD_PRELOAD="$carried_nccl/lib/libnccl.so.2"
      log_choices memory 2
      compare_steps memory-ddp 2 ddp 900 ring/simple/{1,2,4,8,16,32} tree/simple/8 &&
        compare_steps memory-fsdp2 2 fsdp2 900 ring/simple/{1,4,16} tree/simple/8
    ) || code=1
  fi
  (over_sockets && compare_steps sockets-ddp 2 ddp 300 ring/simple/{1,2,4,8} ring/ll/2 tree/simple/2) || code=1
  if [[ -n "$carried_nccl" ]]; then
    # The thread blocks of all ranks must fit on the GPU at once, together with the computation.
    (over_memory && export LD_PRELOAD="$carried_nccl/lib/libnccl.so.2" NCCL_MAX_CTAS=8 && log_choices memory 4) || code=1
  fi
  return $code
}

# Runs whole jobs in turns: unchanged, in mode adaptive with an empty site store, and again with the site store of that
# job. There is no policy, so the experiments begin with NCCL's choices. The job is wide enough to keep the GPU busy, so
# that its steps vary less than those of a small job.
wide_job=(--width 2048 --batch 4)
for_wide_jobs() {
  LD_LIBRARY_PATH="$(libraries)"
  export LD_LIBRARY_PATH
  over_memory
  [[ -z "$carried_nccl" ]] || export LD_PRELOAD="$carried_nccl/lib/libnccl.so.2"
}
# Compares the wide job's step under several channel counts.
part_wide() {
  for_wide_jobs
  compare_steps wide-ddp 2 ddp 500 ring/simple/{4,8,16} "${wide_job[@]}"
}
part_adaptive() {
  local turn job code=0 turns=(1 2 3 4)
  [[ -z "$rehearse" ]] || turns=(1 2)
  for_wide_jobs
  for turn in "${turns[@]}"; do
    for job in off adaptive again; do
      adaptive_job "$job" "$turn" || code=1
    done
  done
  return $code
}

# In every second turn, the host waits for its device only in every tenth step, like jobs that read their loss now and
# then.
adaptive_job() { # off|adaptive|again TURN
  local mode=adaptive steps=400 read_every=1 code
  (($2 % 2)) || read_every=10
  [[ $1 != off ]] || mode=off
  [[ $1 != adaptive ]] || steps=1000
  fresh_mps
  DYNAMICCL_LOG=trace DYNAMICCL_SITE_STORE="$work/site-$2.dcsite" timeout -k 5 "$(scaled 120)" "$home/bin/dynamiccl" run -n 2 "${no_hostccl[@]}" --mode $mode \
    -- python3 "$here/torch_steps.py" "${wide_job[@]}" --steps "$steps" --read-every "$read_every" --json "$work/$1-$2.json" "${job_options[@]}"
  code=$?
  echo "-- $1, turn $2: exit code $code"
  return $code
}

part_measure() {
  local what="sweep tuned observe replay load" of_turns=(--turns 2 --largest 64M --budget 25s)
  if [[ -n "$rehearse" ]]; then
    # No load is tested, because a load is a kernel of ours, which does not run here. The machine counts as one host,
    # over the GPU's memory.
    what="sweep tuned observe replay" of_turns=(--turns 1 --largest 8M --budget 5s)
  elif [[ -n "$carried_nccl" ]]; then over_memory; else over_sockets; fi
  fresh_mps
  "$here/measure.sh" -o "$work/measure" --home "$home" ${carried_nccl:+--nccl "$carried_nccl"} "${rehearsed[@]}" \
    --only "$what" "${of_turns[@]}" --limit 35
}

part_newest() {
  local release="${carried_release:-$rehearsed_release}"
  [[ -n "$release" ]] || { echo "no NCCL was carried"; return 1; }
  "$here/first_hour.sh" -o "$work/hour-newest" --home "$home" --limit 15 --deadline $((limit - 5)) --versions "$release" --only "c b h cost" \
    "${rehearsed[@]}"
}

part_hour() {
  "$here/first_hour.sh" -o "$work/hour-installed" --home "$home" --limit 15 --deadline $((limit - 5)) --only "c forced g a f d e" \
    ${rehearsed_release:+--versions "$rehearsed_release"} "${rehearsed[@]}"
}

part_zero() {
  local torch
  if [[ -n "$rehearse" ]]; then not_rehearsed "the trainer on CUDA needs a PyTorch for CUDA" && return; fi
  torch="$(python3 -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parent)')" || return 3
  if [[ -e "$home/zero_cuda" ]]; then
    # These programs were built elsewhere. zero_cpu finds hostccl by DT_RPATH, which comes before this path.
    LD_LIBRARY_PATH="$torch/lib:$(installed_nccl_folder)/lib:$(libraries)"
    export LD_LIBRARY_PATH
    "$here/zero_on_cuda.sh" --home "$home" -o "$work/zero" --limit 30 --cuda-program "$home/zero_cuda" --cpu-program "$home/zero_cpu"
  else
    "$here/zero_on_cuda.sh" --home "$home" -o "$work/zero" --limit 30 --include "$home/include"
  fi
}

# Packs the logs and results, without programs and libraries.
pack() { tar -C "$out" --exclude='*.so' --exclude='rank_program-*' --exclude=objects -czf "${archive:-$out/results.tgz}" work; }

if [[ -n "$inner" ]]; then
  find_carried_nccl
  limit=$(scaled "${seconds_of[$inner]}")
  "part_$inner"
  exit
fi

[[ "$(describe_gpus | grep -c .)" -gt 0 ]] || { echo "error: no GPU here (nvidia-smi lists none)" >&2; exit 3; }
find_carried_nccl
failed=()
for part in "${parts[@]}"; do
  limit=$(scaled "${seconds_of[$part]}")
  left=$((seconds - SECONDS))
  [[ $limit -le $left ]] || limit=$left
  [[ $limit -ge 5 ]] || { failed+=("$part: no time left"); continue; }
  began=$SECONDS
  timeout -k 10 "$limit" "${BASH_SOURCE[0]}" -o "$out" --home "$home" --only "$part" --scale "$scale" "${rehearsed[@]}" --inner "$part" >"$work/$part.txt" 2>&1
  code=$?
  echo "== $part: exit code $code after $((SECONDS - began)) s"
  grep -v 'NCCL INFO' "$work/$part.txt" | tail -n 15 | cut -c1-220
  [[ $code -eq 0 ]] || failed+=("$part: exit code $code")
  pack
done
[[ ${#failed[@]} -eq 0 ]] || printf '== did not end well: %s\n' "${failed[@]}"
[[ ${#failed[@]} -eq 0 ]]
