#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests that a replay issues what was recorded. The replay runs over hostccl, is recorded again, and is compared. Needs
# DYNAMICCL_BIN and DYNAMICCL_SOURCE.

setup() {
  cd "$BATS_TEST_TMPDIR"
  SAMPLE="$DYNAMICCL_SOURCE/traces/samples/ddp_resnet_2_ranks.pt.trace.json"
  "$DYNAMICCL_BIN" trace import "$SAMPLE" -o sample.ctrace 2>/dev/null
}

# operations TRACE: the replayed operations of rank 0 as the replay reports them
operations() {
  "$DYNAMICCL_BIN" replay "$1" --json --hostccl "${@:2}" | python3 -c 'import json,sys; print(json.load(sys.stdin)["operations"])'
}

@test "a mirrored trace replays with right data on every rank" {
  run "$DYNAMICCL_BIN" replay sample.ctrace -n 2 --check --hostccl
  [ "$status" -eq 0 ]
  [[ "$output" == *"every rank issues its calls"* ]]
  [[ "$output" == *" elements checked, 0 wrong"* ]]
  [[ "$output" == *"AllReduce"* ]]
}

@test "recording a replay gives the same operations, and replaying that too" {
  "$DYNAMICCL_BIN" record -o again.ctrace -n 2 --hostccl -- "$DYNAMICCL_BIN" replay sample.ctrace --hostccl --json > first.json
  first=$(python3 -c 'import json; print(json.load(open("first.json"))["operations"])')
  second=$(operations again.ctrace)
  [ -n "$first" ]
  [ "$first" = "$second" ]
  run "$DYNAMICCL_BIN" trace show again.ctrace
  [ "$status" -eq 0 ]
}

# of_each_rank TRACE: one hash per rank of what the rank issued
of_each_rank() {
  "$DYNAMICCL_BIN" trace show "$1" --json | python3 -c 'import json,sys; print(*json.load(sys.stdin)["operations"])'
}

@test "a program's run, its replay and the replay of its archive issue exactly the same on every rank" {
  "$DYNAMICCL_BIN" record -o run.ctrace -n 3 --hostccl -- "$DYNAMICCL_BIN" bench all_gather -b 4K -e 64K -f 4 -n 5 --singles 20 > bench.txt
  "$DYNAMICCL_BIN" record -o again.ctrace -n 3 --hostccl -- "$DYNAMICCL_BIN" replay run.ctrace --hostccl > replay.txt
  recorded=$(of_each_rank run.ctrace)
  [ "$(echo "$recorded" | wc -w)" -eq 3 ]
  [ "$recorded" = "$(of_each_rank again.ctrace)" ]
  "$DYNAMICCL_BIN" trace archive run.ctrace -o run.ctracez
  [ "$recorded" = "$(of_each_rank run.ctracez)" ]
  run "$DYNAMICCL_BIN" replay run.ctracez --check --hostccl
  [ "$status" -eq 0 ]
  [[ "$output" == *" 0 wrong"* ]]
}

# simulated TRACE OPTION...: one hash per rank of what the rank issued in virtual time
simulated() {
  "$DYNAMICCL_BIN" replay "$@" --simulate dgx-h100 --json | python3 -c 'import json,sys; print(*json.load(sys.stdin)["operations_of_ranks"])'
}

@test "a run, its replay over hostccl and its replay in the simulator issue exactly the same" {
  "$DYNAMICCL_BIN" record -o run.ctrace -n 3 --hostccl -- "$DYNAMICCL_BIN" bench reduce_scatter -b 4K -e 1M -f 4 -n 3 --singles 20 > bench.txt
  "$DYNAMICCL_BIN" record -o again.ctrace -n 3 --hostccl -- "$DYNAMICCL_BIN" replay run.ctrace --hostccl > replay.txt
  recorded=$(of_each_rank run.ctrace)
  [ "$(echo "$recorded" | wc -w)" -eq 3 ]
  [ "$recorded" = "$(of_each_rank again.ctrace)" ]
  [ "$recorded" = "$(simulated run.ctrace)" ]
  [ "$recorded" = "$(simulated run.ctrace --paced)" ]
  # Compares a part of the trace, and a run with the same calls of another data type.
  [ "$(simulated run.ctrace --first 3 --count 5 | cut -d' ' -f1)" = "$(operations run.ctrace --first 3 --count 5)" ]
  "$DYNAMICCL_BIN" record -o other.ctrace -n 3 --hostccl -- "$DYNAMICCL_BIN" bench reduce_scatter -d half -b 4K -e 1M -f 4 -n 3 --singles 20 > bench.txt
  [ "$recorded" != "$(of_each_rank other.ctrace)" ]
  [ "$(of_each_rank other.ctrace)" = "$(simulated other.ctrace)" ]
}

# arms FILE: the arms' names, then whether every row has a time of each
arms() {
  python3 -c 'import json,sys
report = json.load(open(sys.argv[1]))
names = [arm["name"] for arm in report["arms"]]
print(*names, all(row[name]["us_per_call"]["median"] > 0 for row in report["rows"] for name in names), report["wrong"])' "$1"
}

@test "default, ours and best in turns, over hostccl and simulated" {
  "$DYNAMICCL_BIN" record -o run.ctrace -n 2 --hostccl -- "$DYNAMICCL_BIN" bench broadcast -b 4K -e 64K -f 4 -n 2 --singles 20 > bench.txt
  echo 'broadcast,0,18446744073709551615,ring,ll,-1,-1,-1' > ours.csv
  "$DYNAMICCL_BIN" replay run.ctrace --hostccl --count 40 --compare --rounds 1 --rules ours.csv --check --json > over.json
  [ "$(arms over.json)" = "default again ours best True 0" ]
  "$DYNAMICCL_BIN" replay run.ctrace --hostccl --count 10 --compare --rounds 1 --search-seconds 0 --json > none.json 2> none.log
  [[ "$(<none.log)" == *"search for the best: 1 of "*" runs"*"ends after 0 s (of --search-seconds)"* ]]
  [[ "$(<none.json)" == *"the search for the best ended after "*" and tried 0 of "*" configs once"* ]]
  [ "$(arms none.json)" = "default again best True 0" ]
  "$DYNAMICCL_BIN" replay run.ctrace --hostccl --count 40 --json > once.json
  [ "$(python3 -c 'import json; print(*[json.load(open(f))["operations"] for f in ("over.json", "once.json")])' | tr ' ' '\n' | uniq | wc -l)" -eq 1 ]
  "$DYNAMICCL_BIN" replay run.ctrace --simulate dgx-a100 --compare --rules ours.csv --json > simulated.json
  [ "$(arms simulated.json)" = "default ours best True 0" ]
  "$DYNAMICCL_BIN" replay run.ctrace --simulate dgx-a100 --compare --json > two.json
  [ "$(arms two.json)" = "default best True 0" ]
}

@test "a simulated replay follows rules, and says what it cannot do" {
  echo 'allreduce,0,18446744073709551615,ring,ll,-1,-1,-1' > slow.csv
  wall() { "$DYNAMICCL_BIN" replay sample.ctrace -n 16 --simulate dgx-a100 --json "$@" | python3 -c 'import json,sys; print(int(json.load(sys.stdin)["wall_us"]))'; }
  [ "$(wall --rules slow.csv)" -gt "$(wall)" ]
  [ "$(wall --paced)" -gt "$(wall)" ]
  run "$DYNAMICCL_BIN" replay sample.ctrace --simulate nowhere
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" replay sample.ctrace --simulate dgx2 --check
  [ "$status" -eq 2 ]
}

@test "a window replays only its calls" {
  run "$DYNAMICCL_BIN" replay sample.ctrace -n 2 --first 2 --count 3 --json --hostccl
  [ "$status" -eq 0 ]
  [ "$(echo "$output" | python3 -c 'import json,sys; print(sum(r["calls"] for r in json.load(sys.stdin)["rows"]))')" -eq 3 ]
}

@test "a missing, a damaged and an unfitting trace are errors with exit code 2" {
  run "$DYNAMICCL_BIN" replay nothing.ctrace
  [ "$status" -eq 2 ]
  head -c 5000 sample.ctrace > cut.ctrace
  run "$DYNAMICCL_BIN" replay cut.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"byte 5000"* ]]
  run "$DYNAMICCL_BIN" trace show cut.ctrace
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" trace recover cut.ctrace -o whole.ctrace
  [ "$status" -eq 0 ]
}
