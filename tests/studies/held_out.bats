#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the command `dynamiccl-lab held-out`. LAB is the program, SAMPLES the folder with a published table.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  table="$SAMPLES/mn5_h100_allreduce_forced_algo.csv"
}

held_out() { "$LAB" held-out "$@"; }

@test "judges fits on what was left out of them" {
  run --separate-stderr held_out "$table" --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'PYTHON'
import json, sys
result = json.loads(sys.argv[1])["systems"][0]
assert result["ranks"] == [16, 32, 64, 256]
assert result["left_out"]["rank count between"]["fitted"]["cells"] == 54
assert result["left_out"]["rank count between"]["fitted"]["median"] < 0.1
assert result["order"]["picked"]["mean"] < 0.004
PYTHON
  run held_out "$table"
  [[ "$output" == *"| mn5_h100_allreduce_forced_algo | 16 32 64 256 | rank count between | 54 |"* ]]
}

@test "an unknown system and a damaged table are usage errors" {
  run held_out "$table" --system other
  [ "$status" -eq 2 ]
  [[ "$output" == *"no system 'other'"* ]]
  head -c 1000 "$table" > cut_allreduce.csv
  run held_out cut_allreduce.csv
  [ "$status" -eq 2 ]
  [[ "$output" == *"cut_allreduce.csv: line "*" fields under 6 columns"* ]]
}
