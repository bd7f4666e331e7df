# shellcheck shell=bash
# shellcheck disable=SC2034,SC2054,SC2154  # arrays set here are read by run_case; commas are values; the rest is first_hour.sh's
# SPDX-License-Identifier: Apache-2.0
# Answers the questions that need a GPU, one function for each. Sourced by first_hour.sh.

plugin() { common_env+=(NCCL_TUNER_PLUGIN="$work/libprobe_plugin.so" NCCL_PROFILER_PLUGIN="$work/libprobe_plugin.so"); }

# Makes NCCL take each rank for a host of its own. All traffic then goes over loopback sockets, and one GPU is enough.
separate_hosts() { # RANKS
  local rank
  common_env+=(CUDA_VISIBLE_DEVICES="$first_gpu" NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo
    NCCL_MNNVL_ENABLE=0 NCCL_MAX_CTAS=4)
  for ((rank = 0; rank < $1; rank++)); do declare -ga "rank_env_$rank=(NCCL_HOSTID=first_hour_$rank)"; done
}

# Puts several ranks on one GPU by NCCL's own option (2.30 and later).
shared_gpu() { # MAX_CTAS
  common_env+=(CUDA_VISIBLE_DEVICES="$first_gpu" NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS="$1")
}

# (a) Do 2 and 4 ranks on one GPU work when each has its own NCCL_HOSTID?
experiment_a() { # VERSION
  local ranks
  for ranks in 2 4; do
    separate_hosts "$ranks"
    program_options=(--bytes 1048576 --iterations 2)
    run_case a "$ranks ranks, time-sliced" "$1" "$ranks" 1
    if [[ -z "$mps_folder" ]]; then
      skip a "$ranks ranks, MPS" "$1" "MPS was not asked for (--mps) or could not be started"
      continue
    fi
    separate_hosts "$ranks"
    common_env+=(CUDA_MPS_PIPE_DIRECTORY="$mps_folder" CUDA_MPS_LOG_DIRECTORY="$mps_folder")
    program_options=(--bytes 1048576 --iterations 20)
    run_case a "$ranks ranks, MPS" "$1" "$ranks" 1
  done
}

# (b) How many ranks and CTAs does NCCL_MULTI_RANK_GPU_ENABLE support, as processes and as threads?
experiment_b() { # VERSION
  local ranks ctas
  if ! at_least "$1" 2.30.3; then
    skip b "several ranks a GPU" "$1" "NCCL_MULTI_RANK_GPU_ENABLE came with 2.30.3"
    return
  fi
  for ranks in 2 4; do
    for ctas in 1 2 4 8; do
      shared_gpu "$ctas"
      program_options=(--bytes 1048576)
      run_case b "$ranks threads, $ctas CTAs" "$1" "$ranks" "$ranks"
      shared_gpu "$ctas"
      program_options=(--bytes 1048576 --iterations 2)
      run_case b "$ranks processes, $ctas CTAs" "$1" "$ranks" 1
    done
  done
}

# (c) Does STATIC_PLUGIN find the tuner and the profiler of a preloaded object?
experiment_c() { # VERSION
  separate_hosts 2
  preloads=("$work/libprobe_plugin.so")
  common_env+=(NCCL_TUNER_PLUGIN=STATIC_PLUGIN NCCL_PROFILER_PLUGIN=STATIC_PLUGIN)
  program_options=(--bytes 65536 --iterations 2)
  run_case c "preloaded, STATIC_PLUGIN" "$1" 2 1
}

# (d) What does a cost of -1 on a valid entry do? NCCL itself never chooses Ring/Simple for a small message.
experiment_d() { # VERSION
  separate_hosts 2
  plugin
  program_options=(--bytes 1024 --iterations 2)
  run_case d "1 KiB, table untouched" "$1" 2 1
  separate_hosts 2
  plugin
  common_env+=(PROBE_IGNORE=1,2)
  program_options=(--bytes 1024 --iterations 2)
  run_case d "1 KiB, -1 on Ring Simple" "$1" 2 1
}

# (e) Do channel counts below and above NCCL's own take effect?
experiment_e() { # VERSION
  local bytes channels
  for bytes in 262144 16777216; do
    for channels in 0 1 2 3 16; do
      separate_hosts 2
      plugin
      common_env+=(NCCL_MAX_CTAS=16 PROBE_FORCE="1,2,$channels")
      program_options=(--bytes "$bytes" --iterations 2)
      run_case e "$bytes B Ring Simple, $channels channels asked" "$1" 2 1
    done
  done
}

# (f) What happens if two ranks disagree? A hang is an answer too.
experiment_f() { # VERSION
  local asked
  for asked in "1,0,1 1,2,1 LL against Simple" "1,2,1 1,2,4 1 channel against 4" "0,2,2 1,2,2 Tree against Ring"; do
    local left right name
    read -r left right name <<<"$asked"
    separate_hosts 2
    plugin
    rank_env_0+=(PROBE_FORCE="$left")
    rank_env_1+=(PROBE_FORCE="$right")
    program_options=(--bytes 4194304 --iterations 1)
    run_case f "$name" "$1" 2 1
  done
}

# (g) Does the profiler get kernel events during a graph replay? 4 calls are captured and replayed 20 times.
experiment_g() { # VERSION
  local options
  for options in "" "--graph"; do
    separate_hosts 2
    plugin
    common_env+=(PROBE_MASK=66)
    program_options=(--bytes 65536 --iterations 4)
    [[ -z "$options" ]] || program_options+=("$options")
    run_case g "kernel events ${options:-without a graph}" "$1" 2 1
  done
}

# (h) Does the choice per call (algSelection) take effect?
experiment_h() { # VERSION
  local selection
  if ! at_least "$1" 2.31.0; then
    skip h "choice per call" "$1" "ncclAllReduceConfig came with 2.31"
    return
  fi
  for selection in RING_LL RING_SIMPLE TREE_LL TREE_SIMPLE; do
    separate_hosts 2
    program_options=(--bytes 1048576 --iterations 2 --selection "$selection")
    run_case h "algSelection $selection" "$1" 2 1
  done
}

# Does NCCL's log, and does the profiler, show the choices that DynamICCL's rules force? Needs --home.
experiment_forced() { # VERSION
  local choice algorithm protocol channels rules
  if [[ -z "$dynamiccl_object" ]]; then
    skip forced "choices by rules" "$1" "no libdynamiccl.so was named (--home FOLDER)"
    return
  fi
  # LL128 is not offered over sockets. separate_hosts sets NCCL_MAX_CTAS, which would count as channels that the user
  # pinned.
  for choice in "ring ll 1" "ring ll 2" "ring simple 1" "ring simple 2" "tree ll 1" "tree ll 2" "tree simple 1" "tree simple 2"; do
    read -r algorithm protocol channels <<<"$choice"
    rules="$work/rules_${choice// /_}.csv"
    echo "allreduce,0,18446744073709551615,$algorithm,$protocol,$channels,-1,-1" >"$rules"
    separate_hosts 2
    common_env=("${common_env[@]/NCCL_MAX_CTAS=*/NCCL_DEBUG=INFO}")
    preloads=("$dynamiccl_object")
    common_env+=(DYNAMICCL_RULES="$rules" DYNAMICCL_ATTEST_TIMEOUT_MS=20000 NCCL_PROFILER_PLUGIN="$work/libprobe_plugin.so" PROBE_MASK=2)
    program_options=(--bytes 4194304 --iterations 2)
    run_case forced "$choice" "$1" 2 1
  done
}

# What do kernel stamps cost? Uses two GPUs if there are two, otherwise two threads on one. The order of the three cases
# changes with each turn.
experiment_cost() { # VERSION
  local bytes turn mask
  if [[ "$gpu_count" -lt 2 ]] && ! at_least "$1" 2.30.3; then
    skip cost "kernel stamps" "$1" "two ranks on one GPU without time slices need 2.30.3"
    return
  fi
  for turn in 1 2 3; do
    for bytes in 8 1048576 67108864 131072 4194304; do
      for mask in none 0 66; do
        if [[ "$gpu_count" -lt 2 ]]; then shared_gpu 8; fi
        if [[ "$mask" != none ]]; then
          plugin
          common_env+=(PROBE_MASK="$mask")
        fi
        program_options=(--bytes "$bytes" --iterations 50)
        run_case cost "$bytes B, profiler mask $mask, turn $turn" "$1" 2 2
      done
    done
  done
}
