#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the commands that archive and export traces. Needs DYNAMICCL_BIN.

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

@test "import says of our own forms that they need none, and what turns them into a .ctrace" {
  "$DYNAMICCL_BIN" trace archive t.ctrace -o t.ctracez
  "$DYNAMICCL_BIN" trace export t.ctrace --to jsonl -o t.jsonl
  for ours in t.ctrace t.ctracez t.jsonl; do
    run "$DYNAMICCL_BIN" trace import "$ours" -o other.ctrace
    [ "$status" -eq 2 ]
    [[ "$output" == *"a trace of ours"*"trace merge $ours -o FILE"* ]]
    "$DYNAMICCL_BIN" trace merge "$ours" -o "from_$ours.ctrace" 2>/dev/null
    cmp t.ctrace "from_$ours.ctrace"
  done
  echo nothing > nothing.txt
  run "$DYNAMICCL_BIN" trace import nothing.txt -o other.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"no known format"*"--from"* ]]
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

@test "the timeline of a recorded run is what Perfetto's importer of Chrome's JSON needs" {
  DYNAMICCL_TIMES=all "$DYNAMICCL_BIN" record -q -o run.ctrace -n 2 --hostccl --mode observe -- \
    "$DYNAMICCL_BIN" bench all_gather -b 4K -e 64K -f 4 -n 5 --singles 20 > bench.txt
  "$DYNAMICCL_BIN" trace export run.ctrace --to chrome -o timeline.json
  python3 - <<'EOF'
import collections, json
timeline = json.load(open("timeline.json"))
events = timeline["traceEvents"]
slices = [e for e in events if e["ph"] == "X"]
assert slices and {e["pid"] for e in slices} == {0, 1}, "slices of both ranks"
for e in events:
    assert e["ph"] in "XiMstf" and isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["name"], e
    assert e["ph"] == "M" or (isinstance(e["ts"], (int, float)) and e["ts"] >= 0), e
assert all(e["dur"] >= 0 and e["args"]["bytes"] >= 0 for e in slices)
named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
assert {(e["pid"], e["tid"]) for e in slices} <= named
ends = collections.defaultdict(str)
for e in events:
    if e["ph"] in "stf":
        ends[e["id"]] += e["ph"]
assert ends and all(sorted(way) == ["f", "s"] for way in ends.values()), "an arrow begins and ends once on two ranks"
assert any(e["args"]["call"] == 0 for e in slices)
EOF
}

@test "what is written is told as JSON, on standard output alone" {
  said() { "$DYNAMICCL_BIN" trace "$@" --json 2>/dev/null | python3 -c 'import json,sys; d = json.load(sys.stdin); assert d["schema"] == 1; print(*(d[k] for k in sys.argv[1:]))' "${keys[@]}"; }
  records=$("$DYNAMICCL_BIN" trace export t.ctrace --to jsonl | grep -c issued_ns)
  keys=(output records lost processes)
  [ "$(said merge t.ctrace -o m.ctrace)" = "m.ctrace $records 0 2" ]
  [ "$(said recover t.ctrace -o r.ctrace)" = "r.ctrace $records 0 2" ]
  keys=(output records bytes)
  [ "$(said archive t.ctrace -o a.ctracez)" = "a.ctracez $records $(stat -c %s a.ctracez)" ]
  [ "$(said unarchive a.ctracez -o u.ctrace)" = "u.ctrace $records $(stat -c %s t.ctrace)" ]
  keys=(output format files)
  [ "$(said export t.ctrace --to csv -o t.csv)" = "t.csv csv [{'name': '', 'bytes': $(stat -c %s t.csv)}]" ]
  keys=(output framework ranks steps)
  [ "$(said generate --framework ddp --data-parallel 4 --model gpt:layers=1,hidden=64 -o g.ctrace)" = "g.ctrace ddp 4 3" ]
  "$DYNAMICCL_BIN" trace generate --explain --framework ddp --json | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert [f["name"] for f in found["frameworks"]] == ["ddp"]
assert any(s["name"] == "find_unused_parameters" for s in found["frameworks"][0]["settings"]) and found["models"]'
  run "$DYNAMICCL_BIN" trace export t.ctrace --to csv --json
  [ "$status" -eq 2 ]
  [[ "$output" == *"--output"* ]]
}
