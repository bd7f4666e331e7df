#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl run` on a job over NVIDIA's NCCL and the CUDA stand-in. At its end the command reports which settings
# took effect. NCCL's own log and DynamICCL's decisions are the proof.

load release

setup() {
  cd "$BATS_TEST_TMPDIR"
  mkdir ids
}

# job RELEASE ASSIGNMENT... -- OPTION...: runs two nodes of two ranks under `dynamiccl run`.
job() {
  local release="$1" assignments=()
  shift
  "$BUILD/tests/standin_environment" "$release" dgx_h100 "$PWD" >standin.env 2>why || not_run $?
  mapfile -t standin <standin.env
  while [ "$1" != -- ]; do
    assignments+=("$1")
    shift
  done
  shift
  run timeout 120 env -i PATH="$PATH" "${standin[@]}" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING,GRAPH \
    NCCL_DEBUG_FILE="$PWD/nccl.%p.log" "${assignments[@]}" "$BUILD/bin/dynamiccl" run --no-hostccl --json run.json "$@" -- \
    "$BUILD/lib/real_nccl/real_nccl_driver" "$PWD/ids" 2 2 1048576 1048576
  echo "$output"
}

@test "a run over NCCL says what came of each setting and rule, with the line of NCCL's log" {
  printf 'allreduce,1,2097152,tree,simple,2,-1,-1\nallgather,1,2048,ring,ll,1,-1,-1\n' >rules.csv
  job 2.28.9 NCCL_P2P_LEVEL=nvl NCCL_MAX_CHANNELS=4 DYNAMICCL_METRICS="$PWD/%p.prom" -- --rules rules.csv
  [ "$status" -eq 0 ]
  [[ "$output" == *"NO   NCCL_P2P_LEVEL=nvl: the value is no level"*"nccl."*".log:"* ]]
  [[ "$output" == *"NO   NCCL_MAX_CHANNELS=4: "*"did you mean NCCL_MAX_NCHANNELS?"* ]]
  [[ "$output" == *"NO   "*"rules.csv:2: AllGather Ring/LL/1: "* ]]
  [[ "$output" == *"yes  DYNAMICCL_RULES="* ]]
  # The first call of each function and size is left to NCCL, so only the second call shows the rule.
  [[ "$output" == *"AllReduce 1048576 launched 1 ncclDevKernel_AllReduce_Sum_f32_TREE_"* ]]
}

@test "a setting that NCCL refuses is named beside one that it takes" {
  job 2.28.9 NCCL_NTHREADS=100 NCCL_MAX_NCHANNELS=8 -- --mode observe
  [ "$status" -eq 0 ]
  [[ "$output" == *"NO   NCCL_NTHREADS=100: "*"nccl."*".log:"* ]]
  [[ "$output" == *"yes  NCCL_MAX_NCHANNELS=8: 8 channels "*"nccl."*".log:"* ]]
}

@test "a run that asked for nothing wrong refutes nothing" {
  job 2.28.9 NCCL_ALGO=Ring -- --mode observe
  [ "$status" -eq 0 ]
  [[ "$output" != *"  NO   "* && "$output" == *"yes  NCCL_ALGO=Ring: "* ]]
  python3 -c '
import json
receipts = json.load(open("run.json"))["receipts"]
assert receipts and all(one["standing"] != "not in effect" for one in receipts), receipts'
}
