#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Archives and exports as commands. Needs DYNAMICCL_BIN.

setup() {
  cd "$BATS_TEST_TMPDIR"
  "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=2,hidden=64 --data-parallel 2 --steps 3 -o t.ctrace 2>/dev/null
}

@test "an archive turns back into the same bytes, and is read like a trace" {
  run "$DYNAMICCL_BIN" trace archive t.ctrace -o t.ctracez
  [ "$status" -eq 0 ]
  [[ "$output" == *"bytes each"* ]]
  "$DYNAMICCL_BIN" trace unarchive t.ctracez -o back.ctrace
  cmp t.ctrace back.ctrace
  "$DYNAMICCL_BIN" trace export t.ctrace --to jsonl -o a.jsonl
  "$DYNAMICCL_BIN" trace export t.ctracez --to jsonl -o b.jsonl
  cmp a.jsonl b.jsonl
}

@test "a damaged archive names the block, and recover takes the rest" {
  "$DYNAMICCL_BIN" trace archive t.ctrace -o t.ctracez
  printf '\xff' | dd of=t.ctracez bs=1 seek=$(($(stat -c %s t.ctracez) - 60)) conv=notrunc 2>/dev/null
  run "$DYNAMICCL_BIN" trace show t.ctracez
  [ "$status" -eq 2 ]
  [[ "$output" == *"t.ctracez: block at byte "* ]]
  run "$DYNAMICCL_BIN" trace recover t.ctracez -o rest.ctrace
  [ "$status" -eq 0 ]
  run "$DYNAMICCL_BIN" trace show rest.ctrace --json
  [ "$(echo "$output" | python3 -c 'import json,sys; print(json.load(sys.stdin)["ranks"])')" -eq 2 ]
}

@test "every format of the help is written, folders only with a name" {
  help=$("$DYNAMICCL_BIN" trace export --help | tr -s '\n ' ' ')
  for format in jsonl csv chrome tuner-csv nccl-tests chakra goal ctf; do
    [[ "$help" == *" $format: "* ]]
    "$DYNAMICCL_BIN" trace export t.ctrace --to "$format" -o "out.$format" 2>/dev/null
  done
  run "$DYNAMICCL_BIN" trace export t.ctrace --to chakra
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" trace export t.ctrace --to exel
  [ "$status" -eq 2 ]
  [[ "$output" == *"one of: jsonl, csv"* ]]
}

@test "babeltrace2 reads every record of the CTF export" {
  command -v babeltrace2 >/dev/null || skip "babeltrace2 is not installed"
  "$DYNAMICCL_BIN" trace export t.ctrace --to ctf -o ctf
  "$DYNAMICCL_BIN" trace export t.ctrace --to jsonl -o t.jsonl
  babeltrace2 ctf >read.txt 2>/dev/null
  [ "$(wc -l <read.txt)" -eq "$(grep -c issued_ns t.jsonl)" ]
  [ "$(grep -c '"AllGather" : container = 2' read.txt)" -eq "$(grep -c '"collective":"AllGather"' t.jsonl)" ]
}
