#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Asks a machine with a GPU what no other machine can answer about NCCL. See README.md beside it.
#   first_hour.sh [-o FOLDER] [--versions "2.30.7 2.32.3"] [--only "a d e"] [--limit SECONDS] [--home FOLDER]
#                 [--deadline SECONDS] [--mps] [--wheels] [--build-only] [--rehearse FILE]
# Exit codes: 0 all experiments ran (whatever they found), 2 usage, 3 no GPU or something needed is missing.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work=out/first_hour versions=() chosen=(a b c d e f g h forced cost) limit_s=60 deadline_s=86400 want_mps="" want_wheels="" build_only=""
mps_folder="" home="" rehearse="" dynamiccl_object=""

usage() {
  sed -n '3,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    -o | --versions | --only | --limit | --deadline | --home | --rehearse) [[ $# -ge 2 ]] || usage ;;&
    -o) work="$2"; shift 2 ;;
    --versions) read -ra versions <<<"$2"; shift 2 ;;
    --only) read -ra chosen <<<"$2"; shift 2 ;;
    --limit) limit_s="$2"; shift 2 ;;
    --deadline) deadline_s="$2"; shift 2 ;;
    --home) home="$2"; shift 2 ;;
    --rehearse) rehearse="$2"; shift 2 ;;
    --mps) want_mps=1; shift ;;
    --wheels) want_wheels=1; shift ;;
    --build-only) build_only=1; shift ;;
    *) usage ;;
  esac
done

mkdir -p "$work" && work="$(cd "$work" && pwd)" || exit 3
results="$work/results.jsonl"
# shellcheck source=benchmarks/gpu/environment.sh
source "$here/environment.sh"
# shellcheck source=benchmarks/gpu/ranks.sh
source "$here/ranks.sh"
# shellcheck source=benchmarks/gpu/experiments.sh
source "$here/experiments.sh"

[[ -z "$rehearse" ]] || read_rehearsal "$rehearse"
if [[ -n "$home" ]]; then
  dynamiccl_object="$(cd "$home" && pwd)/lib/libdynamiccl.so"
  [[ -e "$dynamiccl_object" ]] || { echo "error: no lib/libdynamiccl.so in '$home'" >&2; exit 3; }
fi
[[ ${#versions[@]} -gt 0 ]] || read -ra versions <<<"$(default_versions)"

for experiment in "${chosen[@]}"; do
  declare -F "experiment_$experiment" >/dev/null || { echo "error: no experiment '$experiment'" >&2; usage; }
done

# Starts an MPS daemon of this user in a folder of this run. It is started only if asked for, and no other daemon is
# ended.
start_mps() {
  [[ -n "$want_mps" ]] || return 0
  local folder="$work/mps"
  mkdir -p "$folder"
  if CUDA_MPS_PIPE_DIRECTORY="$folder" CUDA_MPS_LOG_DIRECTORY="$folder" timeout 20 nvidia-cuda-mps-control -d \
    2>"$folder/start.log"; then
    mps_folder="$folder"
  else
    echo "MPS could not be started: $(head -1 "$folder/start.log")"
  fi
}

stop_mps() {
  [[ -z "$mps_folder" ]] || echo quit | CUDA_MPS_PIPE_DIRECTORY="$mps_folder" timeout 20 nvidia-cuda-mps-control
}

summarise() {
  {
    echo "NCCL on a GPU: $(describe_gpus | sort | uniq -c | tr -s ' ' | tr '\n' ';')"
    echo "$(date -u +%Y-%m-%d) limit ${limit_s} s a case; details in results.jsonl, logs in runs/"
    sed -E 's/^\{"experiment":"([^"]*)","case":"([^"]*)","nccl":"([^"]*)","outcome":"([^"]*)"/\1 | \2 | \3 | \4 | /;
      s/"(rank_0|plugin|exit_codes)"://g; s/[{}"]//g' "$results"
  } >"$work/summary.txt"
  echo "summary: $work/summary.txt"
  python3 "$here/answers.py" "$results" | tee "$work/answers.txt"
}

echo "folder: $work"
build_all || exit 3
[[ -z "$build_only" ]] || exit 0
gpu_count="$(describe_gpus | grep -c .)"
if [[ "$gpu_count" -eq 0 ]]; then
  echo "error: no GPU here (nvidia-smi lists none); everything is built, nothing was run" >&2
  echo "  hint: copy benchmarks/gpu to a machine with an NVIDIA GPU and run first_hour.sh there" >&2
  exit 3
fi
first_gpu="${CUDA_VISIBLE_DEVICES:-0}"
first_gpu="${first_gpu%%,*}"

: >"$results"
start_mps
trap stop_mps EXIT
for version in "${versions[@]}"; do
  for experiment in "${chosen[@]}"; do
    "experiment_$experiment" "$version"
  done
done
summarise
