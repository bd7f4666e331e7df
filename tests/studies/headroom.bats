#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the command `dynamiccl-lab headroom`. LAB is the program, SAMPLES the folder with a published table.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  table="$SAMPLES/mn5_h100_allreduce_forced_algo.csv"
}

@test "judges a published table" {
  run --separate-stderr "$LAB" headroom "$table" --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'PYTHON'
import json, sys
result = json.loads(sys.argv[1])
whole = result["headroom"]["all"][0]
assert whole["cells"] == 36, whole
assert 0 < whole["mean_gain_octaves"] < 0.1, whole
assert len(result["headroom"]["system"]) == 4
assert result["fields"]["ranks"]["groups"] == 9
assert result["fields"]["regime"]["groups"] == 0
PYTHON
}

@test "counts roles of a generated trace" {
  "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=2 --data-parallel 4 -o g.ctrace
  run --separate-stderr "$LAB" headroom --trace g.ctrace --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'PYTHON'
import json, sys
roles = json.loads(sys.argv[1])["roles"][0]
assert roles["keys"] > 0 and 0 <= roles["several_roles"] <= roles["keys"], roles
assert roles["bytes_several_roles"] <= roles["bytes"], roles
PYTHON
}

@test "without another way than the default there is nothing to judge" {
  printf 'bytes,ranks,nodes,coll,us\n1024,8,2,all_reduce,10\n' > plain.csv
  run -2 "$LAB" headroom plain.csv
  [[ "$output" == *"both as the library runs it and otherwise"* ]]
}
