#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl link` on a job of two processes.

setup() {
  cd "$BATS_TEST_TMPDIR"
  "$DYNAMICCL_BIN" bench all_reduce --hostccl -g 2 -b 1K -e 1K -w 0 -n 1000000 --topology two-nodes-slow-rail > bench.log 2>&1 &
  job=$!
}

teardown() { kill "$job" 2> /dev/null || true; wait "$job" || true; }

# Returns the process of rank 0, which is a descendant of the job's process.
rank_zero() {
  for _ in $(seq 300); do
    for process in $("$DYNAMICCL_BIN" link show --all-jobs --json 2> /dev/null |
        python3 -c 'import json,sys; print(*[j["process"] for j in json.load(sys.stdin)["jobs"]])' 2> /dev/null); do
      parent=$process
      while [ "$parent" -gt 1 ]; do
        if [ "$parent" = "$job" ]; then echo "$process"; return; fi
        parent=$(awk '/^PPid:/ {print $2}' "/proc/$parent/status" 2> /dev/null || echo 0)
      done
    done
    sleep 0.1
  done
  return 1
}

links() { "$DYNAMICCL_BIN" link "$@" --json; }

@test "links of a running job are shown, set for some, and reset" {
  process=$(rank_zero)
  links show --job "$process" | python3 -c '
import json, sys
(job,) = json.load(sys.stdin)["jobs"]
assert job["ranks"] == 2 and len(job["links"]) == 4, job
assert sorted(l["degrade"] for l in job["links"]) == [0.25, 0.25, 1, 1], job'
  links set --job "$process" --from 0 --to 1 --rail 1 --latency 700 --degrade 1 | python3 -c '
import json, sys
answer = json.load(sys.stdin)
assert answer["changed"] == 1, answer
(one,) = [l for l in answer["jobs"][0]["links"] if l["ordered"]]
assert (one["from"], one["to"], one["rail"], one["latency_us"], one["degrade"]) == (0, 1, 1, 700, 1), one'
  links reset --job "$process" | python3 -c '
import json, sys
answer = json.load(sys.stdin)
assert answer["changed"] == 4 and not any(l["ordered"] for l in answer["jobs"][0]["links"]), answer'
  run "$DYNAMICCL_BIN" link show --job "$process"
  [ "$status" -eq 0 ]
  [[ "$output" == *"health"* ]]
}

@test "wrong orders say what is wrong" {
  process=$(rank_zero)
  run "$DYNAMICCL_BIN" link set --job "$process" --from 5 --latency 1
  [ "$status" -eq 2 ]
  [[ "$output" == *"no link of the job is 5 -> any"* ]]
  run "$DYNAMICCL_BIN" link set --job "$process" --load 1.5
  [ "$status" -eq 2 ]
  [[ "$output" == *"'load' must be a number from 0 to 0.99"* ]]
  run "$DYNAMICCL_BIN" link set --job "$process"
  [ "$status" -eq 2 ]
  [[ "$output" == *"nothing to set"* ]]
  run "$DYNAMICCL_BIN" link show --job 1
  [ "$status" -ne 0 ]
  [[ "$output" == *"hint:"* ]]
}
