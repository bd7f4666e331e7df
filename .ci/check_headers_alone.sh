#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone: it includes what it needs. Headers of agents, their studies and zero_workloads only where
# LibTorch is found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="$([[ -x .venv/bin/python3 ]] && echo .venv/bin/python3 || echo python3)"
torch="$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null || true)"
flags=(-std=c++20 -fsyntax-only -Wall -Wextra -I.)
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

check_one() {
  local header="$1"
  shift
  # An empty file that includes it first: the header is then no main file, where #pragma once would warn.
  g++ "$@" -include "$header" -x c++ /dev/null || { echo "$header:1: does not compile alone"; exit 1; }
}
export -f check_one
verdict=ok
printf '%s\n' "${headers[@]}" | xargs -P 2 -I '{}' bash -c 'check_one "$@"' _ '{}' "${flags[@]}" || verdict="violations above"
note=""
[[ $skipped -eq 0 ]] || note=", $skipped skipped because LibTorch was not found"
echo "headers alone: ${#headers[@]} headers$note: $verdict"
[[ "$verdict" == ok ]]
