# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of first_hour.sh
# SPDX-License-Identifier: Apache-2.0
# Runs the ranks of one case under a timeout, and writes the outcome as one JSON line. Sourced by first_hour.sh, which
# sets work, results, limit_s and deadline_s.

quoted() { # TEXT -> a JSON string
  local text="${1//\\/\\\\}"
  text="${text//\"/\\\"}"
  printf '"%s"' "$(printf '%s' "$text" | tr -d '\000-\037')"
}

record() { # EXPERIMENT CASE VERSION OUTCOME [DETAIL as JSON members]
  printf '{"experiment":%s,"case":%s,"nccl":%s,"outcome":%s%s}\n' "$(quoted "$1")" "$(quoted "$2")" "$(quoted "$3")" \
    "$(quoted "$4")" "${5:+,$5}" >>"$results"
  printf '  %-4s %-44s NCCL %-7s %s\n' "$1" "$2" "$3" "$4"
}

skip() { record "$1" "$2" "$3" skipped "\"reason\":$(quoted "$4")"; } # EXPERIMENT CASE VERSION REASON

# The environment of a case. Set it before run_case, which clears it. rank_env_R has the variables of rank R only.
common_env=()
program_options=()
preloads=() # objects that a case preloads

# Variables of a rehearsal (first_hour.sh --rehearse), which replace a GPU. Every rank gets them.
rehearsal=()
rehearsal_preload=""
read_rehearsal() { # FILE of NAME=value lines
  local line
  while IFS= read -r line; do
    if [[ "$line" == LD_PRELOAD=* ]]; then rehearsal_preload="${line#LD_PRELOAD=}"; elif [[ -n "$line" ]]; then rehearsal+=("$line"); fi
  done <"$1"
}

# Starts one process in the background.
start_process() { # VERSION FOLDER RANKS FIRST HERE
  local -n own="rank_env_$4"
  local preload
  preload="$(IFS=: && echo "${preloads[*]}")"
  preload="$preload${preload:+${rehearsal_preload:+:}}$rehearsal_preload"
  # env is last in the command, so that timeout does not load a preloaded plugin.
  timeout -k 5 "$limit_s" env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING NCCL_DEBUG_FILE="$2/nccl_$4.log" \
    PROBE_REPORT="$2/plugin_$4.json" ${preload:+LD_PRELOAD="$preload"} "${rehearsal[@]}" "${common_env[@]}" "${own[@]}" "$work/rank_program-$1" --id "$2/id" --ranks "$3" \
    --first "$4" --here "$5" "${program_options[@]}" >"$2/out_$4.json" 2>"$2/err_$4.txt" &
}

outcome_of() { # exit codes of the processes
  local code worst=ok
  for code in "$@"; do
    case "$code" in
      0) ;;
      124 | 137) worst=hang; break ;;
      1) [[ "$worst" != ok ]] || worst=wrong_sums ;;
      *) worst=failed ;;
    esac
  done
  echo "$worst"
}

# Prints times, NCCL's choice, the plugin's counts and the first complaint, as JSON members.
details_of() { # FOLDER CODES
  local chosen complaint parts
  parts="\"exit_codes\":$(quoted "$2")"
  chosen="$(grep -ho 'AllReduce: .* -> Algo .*' "$1"/nccl_*.log 2>/dev/null | tail -1)"
  complaint="$(cat "$1"/nccl_*.log "$1"/err_*.txt 2>/dev/null | grep -m1 -E 'WARN|error|invalid|failure')"
  [[ ! -s "$1/out_0.json" ]] || parts+=",\"rank_0\":$(head -1 "$1/out_0.json")"
  [[ ! -s "$1/plugin_0.json" ]] || parts+=",\"plugin\":$(head -1 "$1/plugin_0.json")"
  [[ -z "$chosen" ]] || parts+=",\"chosen\":$(quoted "$chosen")"
  [[ -z "$complaint" ]] || parts+=",\"complaint\":$(quoted "$complaint")"
  echo "$parts"
}

forget_case() { # RANKS HERE
  local first
  for ((first = 0; first < $1; first += $2)); do unset "rank_env_$first"; done
  common_env=() program_options=() preloads=()
}

# Sets outcome and folder for the caller. All ranks of a case end within limit_s. No case begins once the script has run
# for deadline_s.
run_case() { # EXPERIMENT CASE VERSION RANKS HERE
  local first codes=() processes=() process
  if [[ $SECONDS -ge $deadline_s ]]; then
    skip "$1" "$2" "$3" "the $deadline_s s of this run were over"
    forget_case "$4" "$5"
    return
  fi
  folder="$work/runs/$1-$3-${2//[^A-Za-z0-9]/_}"
  rm -rf "$folder" && mkdir -p "$folder"
  for ((first = 0; first < $4; first += $5)); do
    declare -ga "rank_env_$first+=()"
    start_process "$3" "$folder" "$4" "$first" "$5"
    processes+=($!)
  done
  for process in "${processes[@]}"; do
    wait "$process" 2>/dev/null
    codes+=($?)
  done
  outcome="$(outcome_of "${codes[@]}")"
  record "$1" "$2" "$3" "$outcome" "$(details_of "$folder" "${codes[*]}")"
  forget_case "$4" "$5"
}
