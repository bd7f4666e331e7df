#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs `dynamiccl bench` and `replay` over NVIDIA's NCCL and the CUDA stand-in. Ranks, GPUs, streams and events are
# those of a GPU machine. Kernels do not run, so times are counts of events. A check of the data is therefore refused
# and never passes.

load release

setup() {
  cd "$BATS_TEST_TMPDIR"
  "$BUILD/tests/standin_environment" 2.28.9 dgx_h100 "$BATS_TEST_TMPDIR" >standin.env 2>why || not_run $?
  mapfile -t standin <standin.env
}

over_standin() { timeout 120 env -i PATH="$PATH" "${standin[@]}" "$@"; }

@test "bench times calls by events of the ranks' own GPUs" {
  run over_standin NCCL_DEBUG=WARN "$BUILD/bin/dynamiccl" bench all_reduce --no-hostccl -g 2 -b 1K -e 1M -f 32 -n 3 -w 1 -c 0 -I 1 --rounds 1 --singles 0 -J rows.json
  echo "$output"
  [ "$status" -eq 0 ]
  python3 - <<'CHECK'
import json
result = json.load(open("rows.json"))
assert result["library"] == "NCCL 2.28.9" and result["ranks"] == 2, result
assert [row["bytes"] for row in result["rows"]] == [1024, 32768, 1048576]
for row in result["rows"]:
    for half in ("out_of_place", "in_place"):
        # Each event is one microsecond. Bench records one after each call, and NCCL records as many for every call.
        times = row[half]["per_iteration"]
        assert times["min_us"] > 0.99 and times["max_us"] - times["min_us"] < 1e-3, times
CHECK
}

@test "bench does not take a check that did not run for a pass" {
  [ -e "$BUILD/lib/dynamiccl_kernels.fatbin" ] || skip "this build has no kernels: nvcc was not found"
  run over_standin NCCL_DEBUG=WARN "$BUILD/bin/dynamiccl" bench broadcast --no-hostccl -g 2 -b 4K -e 4K -n 1 -c 1 --rounds 1 --singles 0
  echo "$output"
  [ "$status" -ne 0 ]
  [[ "$output" == *"the check on the GPU looked at 0 of 1024 elements"* ]]
}

@test "a background load that did not run is an error" {
  [ -e "$BUILD/lib/dynamiccl_kernels.fatbin" ] || skip "this build has no kernels: nvcc was not found"
  run over_standin NCCL_DEBUG=WARN "$BUILD/bin/dynamiccl" bench all_reduce --no-hostccl -g 2 -b 4K -e 4K -n 1 -c 0 --rounds 1 --singles 0 --background memory:0.5
  echo "$output"
  [ "$status" -ne 0 ]
  [[ "$output" == *"background load: 0 of 99 blocks ran"* ]]
}

@test "a round without the load comes before what is timed beside it" {
  [ -e "$BUILD/lib/dynamiccl_kernels.fatbin" ] || skip "this build has no kernels: nvcc was not found"
  # NCCL logs to a file, because the program's error could land inside a line of NCCL's on standard error.
  calls() { # BACKGROUND...: counts a rank's calls in a row of one round, 2 halves with a warm-up and a timed call
    rm -f calls.log
    over_standin NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL NCCL_DEBUG_FILE=calls.log "$BUILD/bin/dynamiccl" bench all_reduce --no-hostccl \
      -g 1 -t 2 -b 4K -e 4K -n 1 -w 1 -c 0 --rounds 1 --singles 0 "$@" >printed 2>&1 || true
    grep -E 'AllReduce: .* count 1024 ' calls.log | grep -c ' \[0\] '
  }
  [ "$(calls)" -eq 4 ]
  [ "$(calls --background memory:0.5)" -eq 8 ]
}

@test "processes whose threads share GPUs are told apart, threads that share one are refused" {
  run over_standin NCCL_DEBUG=WARN "$BUILD/bin/dynamiccl" bench all_reduce --no-hostccl -g 2 -t 8 -b 4K -e 4K -n 1 -w 0 -c 0 --rounds 1 --singles 0
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"16 ranks share 8 GPU(s)"* ]]
  run over_standin NCCL_DEBUG=WARN "$BUILD/bin/dynamiccl" bench all_reduce --no-hostccl -g 1 -t 9 -b 4K -e 4K -n 1 -w 0 -c 0 --rounds 1 --singles 0
  echo "$output"
  [ "$status" -eq 2 ]
  [[ "$output" == *"9 ranks as threads of one process on 8 GPU(s)"*"-g instead of -t"* ]]
}

@test "a background load without a GPU is refused with what to do" {
  run "$BUILD/bin/dynamiccl" bench all_reduce --hostccl -g 2 -b 4K -e 4K -n 1 --background memory:0.5
  [ "$status" -eq 2 ]
  [[ "$output" == *"leave --background out"* ]]
  run "$BUILD/bin/dynamiccl" bench all_reduce --hostccl -b 4K -e 4K --background memory:2
  [ "$status" -eq 2 ]
  [[ "$output" == *"memory:SHARE with at most 1"* ]]
}

@test "replay issues a recorded job again over the real NCCL" {
  run "$BUILD/bin/dynamiccl" record -o job.ctrace --hostccl -n 2 -- "$BUILD/bin/dynamiccl" bench all_gather -b 4K -e 64K -f 4 -n 2 -w 0 -c 0 --rounds 1 --singles 0
  echo "$output"
  [ "$status" -eq 0 ]
  run over_standin NCCL_DEBUG=WARN "$BUILD/bin/dynamiccl" replay job.ctrace --no-hostccl -n 2 --json
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *'"library": "NCCL 2.28.9"'* || "$output" == *'"library":"NCCL 2.28.9"'* ]]
}
