#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# dynamiccl-lab-agents: the commands that train every baseline, which takes minutes. LAB_AGENTS is the program, DYNAMICCL_BIN trains the policy.

setup_file() {
  export SWEEP="$BATS_FILE_TMPDIR/c.measurements" POLICY="$BATS_FILE_TMPDIR/p.dcpolicy"
  "$WRITE_SYNTHETIC_SWEEP" "$SWEEP"
  "$DYNAMICCL_BIN" train "$SWEEP" --structure-iterations 2 --config-iterations 20 -o "$POLICY" > "$BATS_FILE_TMPDIR/talk"
}

setup() { cd "$BATS_TEST_TMPDIR"; }

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
