#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs over hostccl that begin with the config that the starter policy expects to save the most. The starter
# learnt from measurements on eight fabrics (policies/step_effects), none of which is a fabric of these jobs.
# Times are modelled, so that the machine's noise decides nothing. GUARD_IN_JOBS is tests/integration/guard_in_jobs.

# job TOPOLOGY MODEL OPTION...: 600 steps of four AllReduces each, on two ranks.
job() {
  "$GUARD_IN_JOBS" --only expected --ranks 2 --topology "$1" --calls 2400 --bytes 131072,262144,524288,1048576 \
    --timing all --policy-file "$DYNAMICCL_SOURCE/policies/starter.dcpolicy" --model "$2" --sleep 1 "${@:3}"
}

@test "on a slow rail one channel is in use before step 25, adopted, and kept" {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  job two-nodes-slow-rail "Ring/Simple/1 4,Ring 8,PAT 8,Tree 8" --winner Ring/Simple/1
}

@test "on a healthy fabric nothing is expected, and nothing adopted" {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  job two-nodes-ethernet "Ring 1"
}

@test "where calls are slow for another reason, one channel is tried and not adopted" {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  job two-nodes-slow-rail "Ring 8,PAT 8,Tree 8" --believed Ring/Simple/1
}
