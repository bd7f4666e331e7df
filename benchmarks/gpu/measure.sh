#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures DynamICCL with the real NCCL on the GPUs of this machine, with the programs of a build. See README.md.
#   measure.sh --home BUILD [-o FOLDER] [--only "observe sweep tuned load replay"] [--turns 3] [--largest 1G]
#              [--budget 120s] [--limit SECONDS] [--nccl FOLDER] [--rehearse FILE]
# Exit codes: 0 all ran, 1 some failed (the rest ran), 2 usage, 3 no GPU or something needed is missing.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work=out/measure home="" chosen=(observe sweep tuned load replay) turns=3 largest=1G budget=120s limit_s=300 nccl="" rehearse=""
failures=0

usage() {
  sed -n '4,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || usage
  case "$1" in
    -o) work="$2" ;;
    --home) home="$2" ;;
    --only) read -ra chosen <<<"$2" ;;
    --turns) turns="$2" ;;
    --largest) largest="$2" ;;
    --budget) budget="$2" ;;
    --limit) limit_s="$2" ;;
    --nccl) nccl="$2" ;;
    --rehearse) rehearse="$2" ;;
    *) usage ;;
  esac
  shift 2
done
[[ -n "$home" ]] || usage

mkdir -p "$work" && work="$(cd "$work" && pwd)" || exit 3
# shellcheck source=benchmarks/gpu/environment.sh
source "$here/environment.sh"
# shellcheck source=benchmarks/gpu/ranks.sh
source "$here/ranks.sh"
[[ -z "$rehearse" ]] || read_rehearsal "$rehearse"
home="$(readlink -f "$home")"
[[ -x "$home/bin/dynamiccl" && -e "$home/lib/libdynamiccl.so" ]] ||
  { echo "error: no build with bin/dynamiccl and lib/libdynamiccl.so in --home" >&2; exit 3; }
[[ "$(describe_gpus | grep -c .)" -gt 0 ]] || { echo "error: no GPU here (nvidia-smi lists none)" >&2; exit 3; }
[[ -n "$nccl" || ${#rehearsal[@]} -gt 0 ]] || nccl="$(installed_nccl_folder)"
[[ -n "$nccl" || ${#rehearsal[@]} -gt 0 ]] || { echo "error: no NCCL among python3's packages; give --nccl FOLDER" >&2; exit 3; }

# Runs a program of the build that can find NCCL and CUDA. The program starts its ranks itself.
measured() { # NAME [VARIABLE=VALUE...] -- ARGUMENTS of dynamiccl
  local name="$1" variables=() preload
  shift
  while [[ "$1" != -- ]]; do variables+=("$1"); shift; done
  shift
  preload="$(IFS=: && echo "${preloads[*]}")"
  preload="$preload${preload:+${rehearsal_preload:+:}}$rehearsal_preload"
  preloads=()
  timeout -k 5 "$limit_s" env LD_LIBRARY_PATH="$(library_path)" ${preload:+LD_PRELOAD="$preload"} "${rehearsal[@]}" \
    "${variables[@]}" "$home/bin/dynamiccl" "$@" >"$work/$name.log" 2>&1 && return
  echo "  failed: $name: $(grep -m1 -E 'error|WARN' "$work/$name.log")"
  failures=$((failures + 1))
  return 1
}

library_path() { echo "$nccl/lib:$(cudart_folder):$home/lib/carried:${LD_LIBRARY_PATH:-}"; }

# Uses two ranks. Kernels do not run in a rehearsal, so data cannot be checked there.
rows() { # FILE OPTIONS... : all_reduce by events
  local file="$1"
  shift
  echo bench all_reduce --no-hostccl -g 2 -c 0 -I 1 --singles 0 -J "$file" "$@"
}

# Removes the results of an earlier run in the same folder, which may have had more turns.
forget() { # ARM...
  local arm
  for arm in "$@"; do rm -f "$work"/{small,large}_"$arm"_*.json; done
}

# Runs nothing, observe and frozen in turns; their order changes with each turn. Frozen has a rule that never matches,
# so it measures what the decision costs and not what a choice gains.
measure_observe() {
  local turn arm arms=(none observe frozen none observe) first
  forget none observe frozen
  echo "broadcast,1,1,ring,simple,-1,-1,-1" >"$work/no_match.csv"
  for ((turn = 0; turn < turns; turn++)); do
    for ((first = turn % 3; first < turn % 3 + 3; first++)); do
      arm="${arms[first]}"
      local variables=(DYNAMICCL_MODE="$arm")
      case "$arm" in
        none) variables=() ;;
        frozen) variables+=(DYNAMICCL_RULES="$work/no_match.csv") ;;
      esac
      if [[ "$arm" != none ]]; then preloads=("$home/lib/libdynamiccl.so"); fi
      # shellcheck disable=SC2046  # words of a command
      measured "small_${arm}_$turn" "${variables[@]}" -- $(rows "$work/small_${arm}_$turn.json" -b 8 -e 1M -f 8 -n 20 -w 5 --rounds 3)
      if [[ "$arm" != none ]]; then preloads=("$home/lib/libdynamiccl.so"); fi
      # shellcheck disable=SC2046
      measured "large_${arm}_$turn" "${variables[@]}" -- $(rows "$work/large_${arm}_$turn.json" -b 8M -e "$largest" -f 8 -n 3 -w 1 --rounds 1)
    done
  done
  python3 "$here/compare_arms.py" "$work" none observe frozen | tee "$work/observe.txt"
}

# Times every config that NCCL offers two ranks, with repeats. A policy can be trained on this data.
measure_sweep() {
  measured sweep -- sweep --no-hostccl -g 2 --collectives all_reduce,all_gather,reduce_scatter --sizes 1K,64K,1M,16M \
    --repeats 12 --budget "$budget" -o "$work/gpu-sweep.measurements" || return
  tail -n +1 "$work/sweep.log"
}

# Makes rules of the sweep's best configs. Times the same calls with and without these rules, in turns.
measure_tuned() {
  local turn arm
  [[ -s "$work/gpu-sweep.measurements" ]] || measure_sweep
  python3 "$here/rules_of_sweep.py" "$work/gpu-sweep.measurements" >"$work/best.csv" || { failures=$((failures + 1)); return; }
  forget untuned tuned
  for ((turn = 0; turn < turns; turn++)); do
    for arm in untuned tuned; do
      local variables=()
      if [[ "$arm" == tuned ]]; then
        preloads=("$home/lib/libdynamiccl.so") variables=(DYNAMICCL_RULES="$work/best.csv")
      fi
      # shellcheck disable=SC2046
      measured "small_${arm}_$turn" "${variables[@]}" -- $(rows "$work/small_${arm}_$turn.json" -b 1K -e 16M -f 8 -n 10 -w 3 --rounds 3)
    done
  done
  python3 "$here/compare_arms.py" "$work" untuned tuned | tee "$work/tuned.txt"
}

# Times the same calls with a load on the GPU's memory and with a load on its multiprocessors. Until it is stopped, the
# load occupies up to three quarters of the multiprocessors. All ranks that share a GPU must fit into the rest.
# Otherwise they would wait for each other, and so for the end of the load.
measure_load() {
  local load turn
  export NCCL_MAX_CTAS=8
  forget idle memory compute
  for ((turn = 0; turn < turns; turn++)); do
    # shellcheck disable=SC2046
    measured "small_idle_$turn" -- $(rows "$work/small_idle_$turn.json" -b 64K -e 16M -f 16 -n 10 --rounds 1)
    for load in memory:0.5 compute:0.25; do
      # shellcheck disable=SC2046
      measured "small_${load%:*}_$turn" -- $(rows "$work/small_${load%:*}_$turn.json" -b 64K -e 16M -f 16 -n 10 --rounds 1 --background "$load")
    done
  done
  unset NCCL_MAX_CTAS
  python3 "$here/compare_arms.py" "$work" idle memory compute | tee "$work/load.txt"
}

# Records a job's calls with the preloaded object. Then issues the calls again and checks the data.
measure_replay() {
  measured record -- record --no-hostccl -n 2 -o "$work/job.ctrace" -- "$home/bin/dynamiccl" bench all_gather -b 4K -e 1M -f 16 \
    -n 3 -w 0 -c 0 --rounds 1 --singles 0 || return
  local check=(--check)
  if [[ ${#rehearsal[@]} -gt 0 ]]; then check=(); fi
  measured replay -- replay "$work/job.ctrace" --no-hostccl -n 2 "${check[@]}" && tail -n +1 "$work/replay.log"
}

for part in "${chosen[@]}"; do
  declare -F "measure_$part" >/dev/null || { echo "error: nothing to measure named '$part'" >&2; usage; }
done
echo "on: $(describe_gpus | sort | uniq -c | tr -s ' ' | paste -sd';'), NCCL in ${nccl:-the rehearsal}, results in $work"
for part in "${chosen[@]}"; do
  echo "== $part"
  "measure_$part"
done
echo "$failures failed"
[[ "$failures" -eq 0 ]]
