#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl pilot` on small jobs over hostccl. DYNAMICCL_BIN is the program.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

@test "a job is observed, its calls are tried, and it is timed where something is better" {
  run --separate-stderr "$DYNAMICCL_BIN" pilot -n 2 --rounds 3 --budget 60s --replayed-calls 20 -o out -- \
    "$DYNAMICCL_BIN" bench all_reduce -b 4K -e 16K -f 4 -n 3
  [ "$status" -le 1 ]
  grep -q "What was found" out/pilot.html
  [ "$(python3 -c 'import json; p = json.load(open("out/pilot.json")); print(len(p["rounds_ms"]) in (0, 3), bool(p["headroom"]["rows"]), p["processes"])')" = "True True 2" ]
  if [ "$status" -eq 0 ]; then [ -e out/best.csv ]; else [ -e out/slower.csv ] && [ ! -e out/best.csv ]; fi
}

@test "with rules of one's own: by default, with ours, by default, without replays" {
  echo 'allreduce,0,18446744073709551615,ring,ll,-1,-1,-1' > rules.csv
  run --separate-stderr "$DYNAMICCL_BIN" pilot -n 2 --rounds 3 --budget 30s --replayed-calls 0 --rules rules.csv --json -o out -- \
    "$DYNAMICCL_BIN" bench all_reduce -b 4K -e 4K -n 3
  [ "$status" -le 1 ]
  [ "$(echo "$output" | python3 -c 'import json,sys; p = json.load(sys.stdin); print(len(p["rounds_ms"]), p["ours"], p["headroom_missing"])')" = "3 rules rules.csv left out" ]
}

@test "a job that fails ends the pilot with its exit code's meaning and the place of its output" {
  run "$DYNAMICCL_BIN" pilot -n 2 -o out -- sh -c 'echo broken; exit 9'
  [ "$status" -eq 4 ]
  [[ "$output" == *job.log* ]]
  grep -q broken out/job.log
}

@test "no job is a usage error" {
  run "$DYNAMICCL_BIN" pilot -o out
  [ "$status" -eq 2 ]
}
