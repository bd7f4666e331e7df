#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests mode adaptive without NCCL's profiler: it must time the steps of a job by events in its stream, whichever rank's
# process leads.

setup() {
  cd "$BATS_TEST_TMPDIR"
  seq 1 20000 >text
}

train() {
  DYNAMICCL_LOG=info "$DYNAMICCL_BIN" run --hostccl -n 2 --topology two-nodes-slow-rail --mode adaptive -- \
    "$DYNAMICCL_BIN" zero train --data text --stage 3 --batch 2 --sequence 32 --steps 250 --log-every 1000000
}

@test "the steps of an experiment are timed by the device" {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  for _ in 1 2; do
    run train
    [ "$status" -eq 0 ]
    [[ "$output" == *"trials begin"*"steps of the experiment so far, timed by the device"* ]]
  done
}
