#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl receipt` from the command line.

setup() {
  cd "$BATS_TEST_TMPDIR"
  {
    echo "node:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda12.9"
    echo "node:7:7 [0] NCCL INFO NCCL_MAX_CTAS set by environment to 0."
    echo "node:7:7 [0] NCCL INFO NCCL_MAX_CTAS 0 is too low, leaving it set at 64"
  } >nccl.log
}

@test "a setting that is not in effect, with the line that proves it" {
  run "$DYNAMICCL_BIN" receipt nccl.log --asked NCCL_ALG=Ring
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"NO   NCCL_ALG=Ring"* && "$output" == *"did you mean NCCL_ALGO?"* ]]
  [[ "$output" == *"nccl.log:3: NCCL_MAX_CTAS 0 is too low"* ]]
  run bash -c '"$DYNAMICCL_BIN" receipt nccl.log --json | python3 -c "
import json, sys
answer = json.load(sys.stdin)
assert answer[\"schema\"] == 1 and answer[\"nccl\"] == \"2.28.9\"
assert answer[\"receipts\"][0][\"standing\"] == \"not in effect\" and answer[\"receipts\"][0][\"proof\"][\"line\"] == 3
"'
  [ "$status" -eq 0 ]
}

@test "what cannot be proved is no refutation, and says what to bring" {
  run "$DYNAMICCL_BIN" receipt <(head -1 nccl.log) --asked NCCL_BUFFSIZE=1048576
  [ "$status" -eq 2 ]
  head -1 nccl.log >short.log
  run "$DYNAMICCL_BIN" receipt short.log --asked NCCL_BUFFSIZE=1048576
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"0 in effect, 0 not, 1 not provable"* && "$output" == *"NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV"* ]]
}

@test "wrong input says what to give" {
  run "$DYNAMICCL_BIN" receipt nccl.log --asked NCCL_ALGO
  [ "$status" -eq 2 ]
  [[ "$output" == *"expected NAME=VALUE"* ]]
  echo "nothing" >notes.txt
  run "$DYNAMICCL_BIN" receipt notes.txt
  [ "$status" -eq 2 ]
  [[ "$output" == *"notes.txt"* && "$output" == *"hint:"* ]]
  head -1 nccl.log >short.log
  run "$DYNAMICCL_BIN" receipt short.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"name no setting: short.log has no line such as 'NCCL_ALGO set by environment to Ring'"* ]]
  [[ "$output" == *"NCCL_DEBUG=INFO with ENV among"* ]]
  [[ "$output" == *"hint: bring the log of every rank"*"NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV"* ]]
  [[ "$output" == *"dynamiccl receipt short.log --asked NCCL_ALGO=Ring"* ]]
  # This log is whole, but NCCL read no setting.
  {
    echo "node:7:7 [0] NCCL INFO cudaDriverVersion 13000"
    cat short.log
    echo "node:7:7 [0] NCCL INFO ncclCommInitRank comm 0x7 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId 0xec - Init COMPLETE"
  } >whole.log
  run "$DYNAMICCL_BIN" receipt whole.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"the job set none, or NCCL_DEBUG_SUBSYS left out ENV"* ]]
  # There is no log at all.
  printf 'PATH=/bin\nHOME=/root\nNCCL=1\n' >job.env
  run "$DYNAMICCL_BIN" receipt job.env
  [ "$status" -eq 2 ]
  [[ "$output" == *"job.env (environment) holds none; NCCL's log has a line for each"* ]]
}

@test "rules that decided nothing in a job over hostccl" {
  echo "allreduce,1,2,ring,ll,1,-1,-1" >rules.csv
  "$DYNAMICCL_BIN" record -o run.ctrace -n 2 --rules rules.csv -- "$DYNAMICCL_BIN" bench all_reduce -b 4K -e 4K -n 5 --rounds 1 --singles 1
  run "$DYNAMICCL_BIN" receipt run.ctrace rules.csv --asked DYNAMICCL_RULES=rules.csv
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"no call of the job matches it"* && "$output" == *"no rule decided a call"* ]]
}

@test "a run says at its end what came of the settings that it was asked for" {
  program="$DYNAMICCL_BIN"
  # The tests' own variables would count as settings that DynamICCL does not have.
  unset "${!DYNAMICCL_@}"
  bench=("$program" bench all_reduce -b 4K -e 4K -n 5)
  printf 'allreduce,1,2048,tree,ll,1,-1,-1\nallgather,1,2048,ring,ll,1,-1,-1\n' >rules.csv
  NCCL_PROTO=LL NCCL_MAX_CHANNELS=4 NCCL_BUFFSIZE=65536 \
    run "$program" run -n 2 --hostccl --rules rules.csv --json run.json -- "${bench[@]}"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"ended well"*"settings asked for: 3 in effect, 3 not, 0 not provable"* ]]
  [[ "$output" == *"NO   NCCL_MAX_CHANNELS=4: "*"did you mean NCCL_MAX_NCHANNELS?"* ]]
  [[ "$output" == *"NO   NCCL_BUFFSIZE=65536: the job ran over hostccl"* ]]
  [[ "$output" == *"NO   "*"rules.csv:2: AllGather Ring/LL/1: NCCL asked for no AllGather"* ]]
  [[ "$output" == *"yes  DYNAMICCL_RULES="*"decisions are the rule's"* ]]
  [[ "$output" == *"yes  NCCL_PROTO=LL: "*" calls were pinned"* ]]
  python3 -c "
import json
receipts = json.load(open('run.json'))['receipts']
assert len(receipts) == 6 and {one['standing'] for one in receipts} == {'in effect', 'not in effect'}, receipts
assert receipts[0]['asked_in']['file'] == 'the environment', receipts[0]"
  # The receipts are absent if nothing was asked for or the run is quiet. The job's exit code stays the same.
  run "$program" run -n 2 --hostccl -- "${bench[@]}"
  [[ "$status" -eq 0 && "$output" != *"settings asked for"* ]]
  NCCL_PROTO=LL run "$program" run -q -n 2 --hostccl -- "${bench[@]}"
  [[ "$status" -eq 0 && "$output" != *"settings asked for"* ]]
  NCCL_ALGO=Ring run "$program" run --hostccl -- false
  [ "$status" -eq 4 ]
  [[ "$output" == *"?    NCCL_ALGO=Ring: not provable from what is here"* ]]
  # The log that the job wrote is a proof. A trace does not prove NCCL's choice.
  NCCL_ALGO=Ring NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV,TUNING NCCL_DEBUG_FILE="$PWD/nccl.%p.log" \
    run "$program" run -n 2 --hostccl -- "${bench[@]}"
  echo "$output"
  [[ "$status" -eq 0 && "$output" == *"yes  NCCL_ALGO=Ring: AllReduce: Ring ("* ]]
}
