#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests every command of dynamiccl-lab-agents on small inputs. LAB_AGENTS is the program, TRAINED the folder of
# tests/agents/train_policy.sh.

setup() {
  cd "$BATS_TEST_TMPDIR"
  SWEEP="$TRAINED/c.measurements"
}

@test "every command has a help" {
  for command in baselines scenarios hypotheses structure timing; do
    "$LAB_AGENTS" "$command" --help > help
    grep -q -- --help help
  done
  run "$LAB_AGENTS"
  [ "$status" -eq 2 ]
}

@test "structure and timing have a schema, and hypotheses read what structure says" {
  "$LAB_AGENTS" structure --only-known --iterations 3 --training-jobs 1 --test-jobs 1 --json - > structure.json
  "$LAB_AGENTS" timing --head-iterations 2 --simulated 2 --quiet-calls 2000 --json timing.json > tables
  [ -s tables ]
  python3 - <<'PYTHON'
import json
for name in ("structure", "timing"):
    said = json.load(open(name + ".json"))
    assert next(iter(said)) == "schema" and said["schema"] == 1, name
said = json.load(open("structure.json"))
assert {"splits", "changes", "buckets"} <= said.keys() and said["splits"][0]["who"]
for judged in json.load(open("timing.json"))["sets"]:
    assert judged["detectors"] and all(len(curve["points"]) == 6 for curve in judged["curves"])
PYTHON
  "$LAB_AGENTS" hypotheses --measurements "$SWEEP" --structure structure.json | grep -q 'family llama'
}

@test "a missing policy or sweep is a usage error" {
  run "$LAB_AGENTS" baselines --measurements "$SWEEP"
  [ "$status" -eq 2 ]
  [[ "$output" == *"--policy"* ]]
  run "$LAB_AGENTS" hypotheses --measurements missing.measurements
  [ "$status" -eq 2 ]
  [[ "$output" == *"missing.measurements"* ]]
}
