#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl calibrate` as a user types it. DYNAMICCL_BIN is the program, SAMPLES the folder with a published table.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  table="$SAMPLES/mn5_h100_allreduce_forced_algo.csv"
}

calibrate() { "$DYNAMICCL_BIN" calibrate "$@"; }

@test "writes a system, and the same bytes again" {
  run calibrate "$table" -o first.toml
  [ "$status" -eq 0 ]
  [[ "$output" == *"108 times, 0 left out"* ]]
  calibrate "$table" -o second.toml
  cmp first.toml second.toml
  [[ "$(head -1 first.toml)" == "# dynamiccl-system" ]]
  [[ "$(tail -1 first.toml)" == "# xxh3 "* ]]
}

@test "judges fits on what was left out of them" {
  run --separate-stderr calibrate "$table" --evaluate --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'PYTHON'
import json, sys
result = json.loads(sys.argv[1])["systems"][0]
assert result["ranks"] == [16, 32, 64, 256]
assert result["left_out"]["rank count between"]["fitted"]["cells"] == 54
assert result["left_out"]["rank count between"]["fitted"]["median"] < 0.1
assert result["order"]["picked"]["mean"] < 0.004
PYTHON
  run calibrate "$table" --evaluate
  [[ "$output" == *"| mn5_h100_allreduce_forced_algo | 16 32 64 256 | rank count between | 54 |"* ]]
}

@test "neither -o nor --evaluate, both, an unknown system and several systems are usage errors" {
  run calibrate "$table"
  [ "$status" -eq 2 ]
  [[ "$output" == *"hint:"* ]]
  run calibrate "$table" --evaluate -o both.toml
  [ "$status" -eq 2 ]
  run calibrate "$table" --system other -o none.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"no system 'other'"* ]]
  sed 's/^nodes,/system,nodes,/; 2,90s/^/a,/; 91,$s/^/b,/' "$table" > two_allreduce.csv
  run calibrate two_allreduce.csv -o two.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"--system"* ]]
  [ ! -e two.toml ]
}

@test "a damaged table is refused by line" {
  head -c 1000 "$table" > cut_allreduce.csv
  run calibrate cut_allreduce.csv --evaluate
  [ "$status" -eq 2 ]
  [[ "$output" == *"cut_allreduce.csv: line "*" fields under 6 columns"* ]]
  cp "$table" unnamed.csv
  run calibrate unnamed.csv --evaluate
  [ "$status" -eq 2 ]
  [[ "$output" == *"no column 'collective'"* ]]
}
