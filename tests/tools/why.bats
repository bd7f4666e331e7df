#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl why` from the command line.

setup() {
  cd "$BATS_TEST_TMPDIR"
  "$DYNAMICCL_BIN" trace generate --framework dynamiccl-zero --model gpt:layers=2,hidden=64,vocabulary=256,head_bias=true \
    --data-parallel 4 --set stage=2,bucket_bytes=65536 --steps 4 -o z.ctrace
}

@test "a trace is one screen of at most 100 columns, a page and data" {
  run "$DYNAMICCL_BIN" why z.ctrace -o z.html
  [ "$status" -eq 0 ]
  [[ "$output" == *"It is ZeRO stage 2 by its labels"* && "$output" == *"Next"* ]]
  [ "${#lines[@]}" -lt 40 ]
  [ "$(printf '%s\n' "$output" | awk '{ if (length($0) > most) most = length($0) } END { print most }')" -le 100 ]
  [[ "$(<z.html)" == *"ZeRO stage 2 by its labels"* ]]
  run bash -c '"$DYNAMICCL_BIN" why z.ctrace --json | python3 -c "
import json, sys
answer = json.load(sys.stdin)
assert answer[\"schema\"] == 1 and answer[\"files\"][0][\"path\"] == \"z.ctrace\"
assert [part[\"id\"] for part in answer[\"parts\"]][0] == \"job\"
"'
  [ "$status" -eq 0 ]
}

@test "a file that says nothing is an error that says what is read" {
  echo "no collectives here" >notes.txt
  run "$DYNAMICCL_BIN" why notes.txt
  [ "$status" -eq 2 ]
  [[ "$output" == *"notes.txt: no known format"* && "$output" == *"hint: these are read"* ]]
  run "$DYNAMICCL_BIN" why z.ctrace z.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"files of one job"* ]]
  run "$DYNAMICCL_BIN" why
  [ "$status" -eq 2 ]
}
