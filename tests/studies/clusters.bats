#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the command `dynamiccl-lab clusters`. LAB is the program, SAMPLES the folder with a published table.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  table="$SAMPLES/mn5_h100_allreduce_forced_algo.csv"
}

clusters() { "$LAB" clusters "$@"; }

@test "--json says what the written file holds, and equal seeds give equal files" {
  run --separate-stderr clusters "$table" -o first.measurements --count 3 --seed 5 --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'PYTHON'
import json, sys
said = json.loads(sys.argv[1])
assert list(said) == ["schema", "output", "topologies", "rows", "systems"], said
assert said["schema"] == 1 and said["output"] == "first.measurements" and said["systems"] == 1
lines = [json.loads(line) for line in open("first.measurements")]
rows = [line for line in lines if line.get("kind") == "row"]
contexts = [line for line in lines if line.get("kind") == "context"]
assert said["rows"] == len(rows) > 1000, (said, len(rows))
assert said["topologies"] == len(contexts) >= 3, (said, len(contexts))
PYTHON
  clusters "$table" -o second.measurements --count 3 --seed 5
  diff <(tail -n +2 first.measurements) <(tail -n +2 second.measurements) | grep -c '^[<>]' | grep -qx 2 # the checksum's line
  clusters "$table" -o other.measurements --count 3 --seed 6
  [ "$(diff first.measurements other.measurements | grep -c '^>')" -gt 1000 ]
}

@test "--published writes the times as they were published" {
  run --separate-stderr clusters "$table" --published mn5_h100_allreduce_forced_algo -o p.measurements --json
  [ "$status" -eq 0 ]
  python3 - "$output" "$table" <<'PYTHON'
import json, sys
said = json.loads(sys.argv[1])
lines = [line.split(",") for line in open(sys.argv[2])][1:]
forced = {tuple(line[:4]) for line in lines if line[3] in ("nccl_ring", "nccl_tree")}
own = {tuple(line[:3]) for line in lines if line[3] not in ("nccl_ring", "nccl_tree")} # the library's own choice
assert said["rows"] == len(forced) + len(own) == 108, said
assert said["topologies"] == 4
PYTHON
  "$LAB" headroom p.measurements > /dev/null
}

@test "no output, no data, an unknown system and too few times are errors, and nothing is written" {
  run clusters "$table"
  [ "$status" -eq 2 ]
  run --separate-stderr clusters missing.csv -o none.measurements --json
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  run clusters "$table" --published other -o none.measurements
  [ "$status" -eq 2 ]
  [[ "$output" == *"no system with 24 times"* && "$output" == *"hint:"* ]]
  head -20 "$table" > few.csv
  run clusters few.csv -o none.measurements
  [ "$status" -eq 2 ]
  [ ! -e none.measurements ]
}
