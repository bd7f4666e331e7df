#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs over hostccl that begin with the config that the starter policy expects to save the most. The starter learnt from
# measurements on eight fabrics (policies/step_effects). None of them is a fabric of these jobs. Times are modelled, so
# the machine's noise decides nothing. Calls sleep for these times, so the jobs of all tests can run at once.
# GUARD_IN_JOBS is tests/integration/guard_in_jobs.

# start NAME TOPOLOGY MODEL OPTION...: runs 600 steps of four AllReduces each on two ranks. The output is in NAME.said,
# the exit code in NAME.code.
start() {
  local name="$1" code=0
  "$GUARD_IN_JOBS" --only expected --ranks 2 --topology "$2" --calls 2400 --bytes 131072,262144,524288,1048576 \
    --timing all --policy-file "$DYNAMICCL_SOURCE/policies/starter.dcpolicy" --model "$3" --sleep 1 "${@:4}" > "$name.said" 2>&1 ||
    code=$?
  echo "$code" > "$name.code"
}

setup_file() {
  [ -z "$SANITIZED" ] || return 0
  cd "$BATS_FILE_TMPDIR"
  start slow two-nodes-slow-rail "Ring/Simple/1 4,Ring 8,PAT 8,Tree 8" --winner Ring/Simple/1 &
  start healthy two-nodes-ethernet "Ring 1" &
  start elsewhere two-nodes-slow-rail "Ring 8,PAT 8,Tree 8" --believed Ring/Simple/1 &
  wait
}

# ends_well NAME: requires that the job NAME exited with 0.
ends_well() {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  cat "$BATS_FILE_TMPDIR/$1.said"
  [ "$(cat "$BATS_FILE_TMPDIR/$1.code")" -eq 0 ]
}

@test "on a slow rail one channel is in use before step 25, adopted, and kept" {
  ends_well slow
}

@test "on a healthy fabric nothing is expected, and nothing adopted" {
  ends_well healthy
}

@test "where calls are slow for another reason, one channel is tried and not adopted" {
  ends_well elsewhere
}
