#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the commands of dynamiccl-lab-agents that train every baseline, which takes minutes. LAB_AGENTS is the program,
# TRAINED the folder of tests/agents/train_policy.sh.

setup() {
  cd "$BATS_TEST_TMPDIR"
  SWEEP="$TRAINED/c.measurements" POLICY="$TRAINED/p.dcpolicy"
}

@test "baselines have a schema and judge every chooser" {
  "$LAB_AGENTS" baselines --policy "$POLICY" --measurements "$SWEEP" --json - > baselines.json
  python3 - <<'PYTHON'
import json
said = json.load(open("baselines.json"))
assert next(iter(said)) == "schema" and said["schema"] == 1
choosers = {row["chooser"] for row in said["config"]}
assert {"default", "policy", "oracle", "CSV rules", "coordinate descent"} <= choosers, choosers
PYTHON
}

@test "scenarios say at which sizes protocols change" {
  "$LAB_AGENTS" scenarios --policy "$POLICY" --measurements "$SWEEP" > page
  [ -s page ]
}
