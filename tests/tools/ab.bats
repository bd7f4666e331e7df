#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl ab` on small jobs over hostccl. DYNAMICCL_BIN is the program.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
  JOB=("$DYNAMICCL_BIN" bench all_reduce -b 256K -e 256K -n 400 --rounds 1)
}

@test "settings take turns within one job, and the slow one is named" {
  run --separate-stderr "$DYNAMICCL_BIN" ab default ring/simple/1 allreduce=ring/ll/1 -n 2 -q --turn-steps 4 --json out.json -- "${JOB[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"3 settings in turns of 4 steps"* ]]
  [ "$(python3 -c 'import json; r = json.load(open("out.json")); print(r["turn_steps"], [s["name"] for s in r["settings"]], all(s["turns"] > 3 for s in r["settings"]))')" = "4 ['default', 'ring/simple/1', 'allreduce=ring/ll/1'] True" ]
}

@test "a result whose file cannot be written is printed all the same" {
  for option in --json --effects; do
    mkdir folder
    run --separate-stderr "$DYNAMICCL_BIN" ab default ring/ll/1 -n 2 -q "$option" folder/file -- bash -c 'rm -rf folder; exec "$@"' bash "${JOB[@]}"
    [ "$status" -ne 0 ]
    [[ "$stderr" == *folder/file* ]]
    [[ "$output" == *"2 settings in turns of 3 steps"* ]]
  done
}

@test "a folder that is missing from the start is said before the job starts" {
  run --separate-stderr "$DYNAMICCL_BIN" ab default ring/ll/1 -n 2 -q --json no/such/folder/file -- "${JOB[@]}"
  [ "$status" -ne 0 ]
  [[ "$stderr" == *no/such/folder/file* ]]
  [[ "$output" != *"2 settings in turns of 3 steps"* ]]
}

@test "a file of rules is a setting, and the trace can be kept" {
  printf 'version = 1\n[[rule]]\ncollective = "allreduce"\nconfig = "ring/ll/1"\n' > mine.toml
  run --separate-stderr "$DYNAMICCL_BIN" ab default mine.toml -n 2 -q --trace kept.ctrace -- "${JOB[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"mine.toml"* ]]
  [ "$("$DYNAMICCL_BIN" trace show kept.ctrace | awk '/Ring LL x1/ {print $4}')" -gt 10 ]
}

@test "effects on steps are written for training, relative to NCCL's choice" {
  run --separate-stderr "$DYNAMICCL_BIN" ab default ring/ll/1 -n 2 -q --topology two-nodes-ethernet --effects e.measurements -- "${JOB[@]}"
  [ "$status" -eq 0 ]
  [ "$(python3 -c 'import json
lines = [json.loads(line) for line in open("e.measurements")]
effect = lines[2]
print(lines[1]["topology"], lines[1]["ranks"], effect["collectives"], effect["bytes"], effect["algorithm"], effect["channels"], effect["error"] > 0)')" = "two-nodes-ethernet 2 ['AllReduce'] 262144 Ring 1 True" ]
  run "$DYNAMICCL_BIN" ab ring/ll/1 default -n 2 -q --effects f.measurements -- touch started
  [ "$status" -eq 2 ]
  [[ "$output" == *"effects are relative to NCCL's choice"* ]]
  [ ! -e started ]
}

@test "what cannot take turns is said before the job starts" {
  run "$DYNAMICCL_BIN" ab default nonsense -n 2 -- touch started
  [ "$status" -ne 0 ]
  [[ "$output" == *"error: 'nonsense' is no configuration"*"after \`--\`"* ]]
  run "$DYNAMICCL_BIN" ab default allgather=tree/ll -n 2 -- touch started
  [[ "$output" == *"NCCL has no tree/ll for AllGather"* ]]
  printf 'version = 1\n[[communicator]]\nmax_ctas = 4\n' > ctas.toml
  run "$DYNAMICCL_BIN" ab default ctas.toml -n 2 -- touch started
  [ "$status" -ne 0 ]
  [[ "$output" == *"rules for communicators"* ]]
  run "$DYNAMICCL_BIN" ab default -n 2 -- touch started
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" ab default ring/ll --rules ctas.toml -n 2 -- touch started
  [ "$status" -ne 0 ]
  [ ! -e started ]
}

@test "a job that fails, and one that makes no calls" {
  run "$DYNAMICCL_BIN" ab default ring/ll -n 2 -q -- sh -c 'exit 9'
  [ "$status" -eq 4 ]
  run "$DYNAMICCL_BIN" ab default ring/ll -n 2 -q -- true
  [ "$status" -ne 0 ]
  [[ "$output" == *"error:"* ]]
}

@test "after Ctrl-C the exit code is that of the signal, and a line says what is kept" {
  "$DYNAMICCL_BIN" ab default ring/ll/1 -n 2 -q --trace kept.ctrace -- "$DYNAMICCL_BIN" bench all_reduce -b 1M -e 1M -n 1000000 --rounds 1 >out 2>err &
  ab=$!
  until compgen -G 'kept.ctrace~*' >none || ! kill -0 $ab; do sleep 0.1; done
  kill -INT $ab
  code=0
  wait $ab || code=$?
  [ "$code" -eq 130 ]
  grep -q "interrupted" err
  grep -q "kept in kept.ctrace" err
  run "$DYNAMICCL_BIN" trace show kept.ctrace
  [ "$status" -eq 0 ]
}
