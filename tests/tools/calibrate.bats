#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl calibrate` as a user types it. DYNAMICCL_BIN is the program, and SAMPLES is the folder with a
# published table.

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
  [ "$(grep -c '^\[\[error\]\]' first.toml)" -eq 4 ]
  [[ "$output" == *"error on 64 ranks, fitted to the others: AllReduce "*" % median"* ]]
}

@test "no -o, an unknown system and several systems are usage errors" {
  run calibrate "$table"
  [ "$status" -eq 2 ]
  [[ "$output" == *"--output"*"hint:"* ]]
  run calibrate "$table" --system other -o none.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"no system 'other'"* ]]
  sed 's/^nodes,/system,nodes,/; 2,90s/^/a,/; 91,$s/^/b,/' "$table" > two_allreduce.csv
  run calibrate two_allreduce.csv -o two.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"--system"* ]]
  [ ! -e two.toml ]
}

@test "takes data that differ together on request, and a table that names no collective" {
  sed 's/^nodes,/system,nodes,/; 2,90s/^/a,/; 91,$s/^/b,/' "$table" > two_allreduce.csv
  run calibrate two_allreduce.csv --merge both -o both.toml
  [ "$status" -eq 0 ]
  [[ "$output" == "both: 108 times"* ]]
  cp "$table" unnamed.csv
  run calibrate unnamed.csv --collective AllReduce -o named.toml
  [ "$status" -eq 0 ]
  run calibrate unnamed.csv --collective AllRedo -o none.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"no collective 'AllRedo'"* ]]
  run calibrate unnamed.csv --from simai -o none.toml
  [ "$status" -eq 2 ]
}

@test "a damaged table is refused by line" {
  head -c 1000 "$table" > cut_allreduce.csv
  run calibrate cut_allreduce.csv -o none.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"cut_allreduce.csv: line "*" fields under 6 columns"* ]]
  cp "$table" unnamed.csv
  run calibrate unnamed.csv -o none.toml
  [ "$status" -eq 2 ]
  [[ "$output" == *"no column 'collective'"* ]]
  [ ! -e none.toml ]
}
