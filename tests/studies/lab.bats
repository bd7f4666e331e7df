#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl-lab` itself, and those of its commands that have no other tests. LAB is the program, DYNAMICCL_BIN
# the product's program, SAMPLES the folder with a published table.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
  table="$SAMPLES/mn5_h100_allreduce_forced_algo.csv"
}

@test "the help lists every command, and every command has a help with three examples" {
  run --separate-stderr "$LAB" --help
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  for command in headroom clusters compare held-out tradeoffs capped zero-paper hostccl-calibration; do
    run --separate-stderr "$LAB" --help
    [[ "$output" == *"  $command "* ]]
    run --separate-stderr "$LAB" "$command" --help
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "Examples:" ]
    [[ "${lines[4]}" == "  dynamiccl-lab $command "* ]]
  done
}

@test "errors name this program" {
  run "$LAB" headrom
  [ "$status" -eq 2 ]
  [[ "$output" == *"dynamiccl-lab: no command 'headrom'"*"did you mean \`dynamiccl-lab headroom\`"* ]]
  run "$LAB" headroom --jsn
  [ "$status" -eq 2 ]
  [[ "$output" == *"dynamiccl-lab headroom:"*"--json"* ]]
  run "$LAB" headroom absent.measurements
  [[ "$output" == *"dynamiccl sweep -o run.measurements"* ]]
}

@test "zero-paper: the paper's figures" {
  run "$LAB" zero-paper fig6
  [ "$status" -eq 0 ]
  [[ "$output" == *"C1 < C2 < C4 < C5"* ]]
  run "$LAB" zero-paper fig9
  [ "$status" -eq 2 ]
  [[ "$output" == *"fig2 to fig8"* ]]
  run "$LAB" zero-paper --system none.toml
  [ "$status" -eq 2 ]
  "$LAB" zero-paper --json | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["figures"]) == 7'
}

@test "compare: a sweep orders its configs as itself, and says what stands for what" {
  "$LAB" clusters "$table" --published mn5_h100_allreduce_forced_algo -o p.measurements > said
  topology="$(grep -o '"topology": *"[^"]*"' p.measurements | head -1 | cut -d'"' -f4)"
  run "$LAB" compare p.measurements p.measurements --topology "$topology=$topology"
  [ "$status" -eq 0 ]
  [[ "$output" == *"0 in reverse"*"Kendall's tau 1.00"* ]]
  run "$LAB" compare p.measurements p.measurements --topology "$topology"
  [ "$status" -eq 2 ]
  [[ "$output" == *"write FIRST=SECOND"* ]]
}

@test "hostccl-calibration: map and rules of a sweep, and what is missing" {
  xz -dkc "$DYNAMICCL_SOURCE/docs/results/hostccl-map-2-ranks.measurements.xz" > map.measurements
  run "$LAB" hostccl-calibration map map.measurements --constants fitted.measurements
  [ "$status" -eq 0 ]
  [[ "$output" == *"before the fit"* ]]
  [ -s fitted.measurements ]
  "$LAB" hostccl-calibration rules map.measurements --topology two-nodes-ethernet -o calibrated.csv
  "$DYNAMICCL_BIN" config check calibrated.csv
  run "$LAB" hostccl-calibration rules map.measurements --topology other -o none.csv
  [ "$status" -eq 2 ]
  [ ! -e none.csv ]
}
