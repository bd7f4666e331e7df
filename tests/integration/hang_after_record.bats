#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests that `dynamiccl hang` states how a recorded rank ended, as its launcher saw it. Needs DYNAMICCL_BIN and
# HANGING_JOB (hanging_job.cc).

setup() { cd "$BATS_TEST_TMPDIR"; }

# hang_of FAULT: records the hanging job with this fault, and runs `dynamiccl hang` on the trace
hang_of() {
  JOB_FAULT=$1 JOB_END=never run "$DYNAMICCL_BIN" record -o "$1.ctrace" -n 3 --hostccl -- "$HANGING_JOB" "$PWD/id_$1" ignored
  [ "$status" -eq 4 ]
  run "$DYNAMICCL_BIN" hang "$1.ctrace"
  [ "$status" -eq 1 ]
}

@test "hang tells a rank that was killed from one that called _exit, where record launched it" {
  hang_of kill
  # The machine decides whether the other ranks had returned from the call before.
  [[ "$output" == *"rank 2 "*"signal 9 (SIGKILL) killed it"* && "$output" != *"does not tell"* ]]
  hang_of leave
  [[ "$output" == *"rank 2 "*"left with exit code 7 and not in order, as _exit does"* ]]
}
