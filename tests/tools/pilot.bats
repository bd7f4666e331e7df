#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl pilot` on small jobs over hostccl. DYNAMICCL_BIN is the program, and GUARDED_JOB is the program of a
# rank that repeats its calls.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

# job BYTES CALLS sets up a job that issues CALLS AllReduces of BYTES one after the other and waits for each.
job() {
  export JOB_BYTES="$1"
  JOB=(sh -c "exec '$GUARDED_JOB' id.\$MASTER_PORT $2")
}

of_pilot() { python3 -c "import json; p = json.load(open('out/pilot.json')); print($1)"; }

@test "a job is observed, configs take turns in it, and what looks best is compared once more" {
  job 262144 600
  run --separate-stderr "$DYNAMICCL_BIN" pilot -n 2 --topology two-nodes-slow-rail --starts 2 --budget 60s -o out -- "${JOB[@]}"
  [ "$status" -eq 0 ]
  grep -q "What was found" out/pilot.html
  [ "$(of_pilot 'p["verdict"], p["starts"], p["decided"]["rounds"] > 12, p["processes"]')" = "faster 2 True 2" ]
  [[ "$output" == *"dynamiccl run --rules out/best.toml"* ]]
  run "$DYNAMICCL_BIN" config check out/best.toml
  [ "$status" -eq 0 ]
}

@test "rules of one's own are compared with NCCL's choice; slower ones end with exit code 1" {
  echo 'allreduce,0,18446744073709551615,ring,ll,1,-1,-1' > rules.csv
  job 262144 600
  run --separate-stderr "$DYNAMICCL_BIN" pilot -n 2 --topology two-nodes-slow-rail --starts 1 --rules rules.csv --json -o out -- "${JOB[@]}"
  [ "$status" -eq 1 ]
  [ "$(of_pilot 'p["ours"], p["verdict"], p["searched"]')" = "rules rules.csv slower []" ]
  [ ! -e out/best.toml ]
}

@test "a job without steps that repeat is not compared, and the answer says why" {
  export JOB_ORDER=mixed
  job 4096,8192,16384 300
  run --separate-stderr "$DYNAMICCL_BIN" pilot -n 2 -o out -- "${JOB[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"Nothing can be said"*"no training step that repeats"* ]]
  [ "$(of_pilot 'p["verdict"], p["decided"]')" = "void None" ]
}

@test "a mode or two choices that cannot take turns are usage errors" {
  touch p.dcpolicy
  run "$DYNAMICCL_BIN" pilot --mode adaptive -o out -- true
  [ "$status" -eq 2 ]
  [[ "$output" == *"dynamiccl run --mode adaptive"* ]]
  run "$DYNAMICCL_BIN" pilot --policy p.dcpolicy --rules rules.csv -o out -- true
  [ "$status" -eq 2 ]
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

@test "an output that cannot be written is said before the job starts" {
  mkdir -p out/pilot.html
  run "$DYNAMICCL_BIN" pilot -n 2 -o out -- touch started
  [ "$status" -eq 2 ]
  [[ "$output" == *"out/pilot.html: is a folder"* ]]
  [ ! -e started ]
}

@test "after Ctrl-C the exit code is that of the signal, and a line says what is kept" {
  job 262144 100000000
  "$DYNAMICCL_BIN" pilot -n 2 -o out -- "${JOB[@]}" >text 2>err &
  pilot=$!
  until compgen -G 'out/observed.ctrace~*' >none || ! kill -0 $pilot; do sleep 0.1; done
  kill -INT $pilot
  code=0
  wait $pilot || code=$?
  [ "$code" -eq 130 ]
  grep -q "interrupted" err
  grep -q "a new pilot begins again; the job.s calls are in out/observed.ctrace, its output is in out/job.log" err
  [ -e out/observed.ctrace ]
}
