#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone: it includes what it needs. Headers of agents, their studies and zero_workloads only where
# LibTorch is found. What compiled is kept by ccache, where that is installed; all of it takes 15 minutes of processor time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="$([[ -x .venv/bin/python3 ]] && echo .venv/bin/python3 || echo python3)"
torch="$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null || true)"
flags=(-std=c++20 -O0 -Wall -Wextra -I.)
[[ -z "$torch" ]] || flags+=(-isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include")

headers=() skipped=0
while read -r header; do
  case "$header" in
    benchmarks/gpu/*) continue ;; # CUDA's and NCCL's own headers: first_hour.sh --build-only compiles these
    agents/* | zero_workloads/* | studies/agents/* | tests/agents/* | tests/studies/agents/* | tests/zero_workloads/*)
      if [[ -z "$torch" ]]; then
        skipped=$((skipped + 1))
        continue
      fi
      ;;
  esac
  headers+=("$header")
done < <(git ls-files -co --exclude-standard '*.h')

# Files that include one header each, under names that are the same in every clone, so that ccache finds them again.
units=build/headers_alone
mkdir -p "$units"
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
check_one() {
  local header="$1" unit="$2/${1//\//+}.cc"
  shift 2
  [[ -f "$unit" ]] || printf '#include "%s"\n' "$header" >"$unit"
  "$@" -MD -c "$unit" -o "${unit%.cc}.o" || { echo "$header:1: does not compile alone"; exit 1; }
  rm "${unit%.cc}.o" "${unit%.cc}.d"
}
export -f check_one
compiler=(g++)
! command -v ccache >/dev/null || compiler=(ccache g++)
verdict=ok
printf '%s\n' "${headers[@]}" | xargs -P 2 -I '{}' bash -c 'check_one "$@"' _ '{}' "$units" "${compiler[@]}" "${flags[@]}" || verdict="violations above"
note=""
[[ $skipped -eq 0 ]] || note=", $skipped skipped because LibTorch was not found"
echo "headers alone: ${#headers[@]} headers$note: $verdict"
[[ "$verdict" == ok ]]
