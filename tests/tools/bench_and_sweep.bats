#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests of `dynamiccl bench` and `dynamiccl sweep` over hostccl. The ranks are processes, their data are checked, and
# the measurement file must be readable.

setup() { cd "$BATS_TEST_TMPDIR"; }

@test "bench checks the data of every collective, type and operator" {
  for collective in all_reduce all_gather reduce_scatter broadcast reduce sendrecv alltoall gather scatter; do
    run "$DYNAMICCL_BIN" bench $collective --hostccl -b 64 -e 64K -f 128 -n 2 -w 1 -g 3 --rounds 1 --singles 1
    [ "$status" -eq 0 ]
    [[ "$output" == *"# Out of bounds values : 0 OK"* ]]
  done
  run "$DYNAMICCL_BIN" bench hypercube --hostccl -b 4K -e 4K -n 2 -g 4 --rounds 1 --singles 1
  [ "$status" -eq 0 ]
  run "$DYNAMICCL_BIN" bench all_reduce --hostccl -b 4098 -e 4098 -n 1 -w 0 -d all -o all --rounds 1 --singles 1
  [ "$status" -eq 0 ]
  [[ "$output" == *"0 OK"* ]]
  for type in half bfloat16 float double int8 uint8 int32 uint32 int64 uint64; do
    [ "$(grep -c " $type " <<<"$output")" -eq 5 ]
  done
}

@test "a rank that another launcher started says where hostccl is, and finds it there" {
  run env RANK=0 WORLD_SIZE=2 MASTER_PORT=1 LD_LIBRARY_PATH= "$DYNAMICCL_BIN" bench all_reduce --hostccl -b 1K -e 1K
  [ "$status" -eq 3 ]
  [[ "$output" == *"hint: put NCCL's folder in LD_LIBRARY_PATH, or hostccl's folder, which \`dynamiccl path --hostccl\` prints"* ]]
  export LD_LIBRARY_PATH="$("$DYNAMICCL_BIN" path --hostccl)"
  run "$DYNAMICCL_BIN" run --no-hostccl -n 2 -- "$DYNAMICCL_BIN" bench all_reduce -b 1K -e 1K -n 1
  [ "$status" -eq 0 ]
  [[ "$output" == *"# Out of bounds values : 0 OK"* ]]
}

@test "bench prints nccl-tests' columns, with ours after them" {
  run "$DYNAMICCL_BIN" bench all_reduce_perf --hostccl -b 1K -e 2K -f 2 -n 3 --rounds 2 --singles 20 -t 2 -g 1
  [ "$status" -eq 0 ]
  [[ "$output" == *"#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong      p50      p99  spread  %copy"* ]]
  [ "$(grep -cE '^ +(1024 +256|2048 +512) +float +sum +-1( +[0-9.]+){3} +0( +[0-9.]+){3} +0( +[0-9.e+]+){8}$' <<<"$output")" -eq 2 ]
  printf '%s\n' "$output" > all_reduce.txt
  run "$DYNAMICCL_BIN" trace import all_reduce.txt -o t.measurements
  [ "$status" -eq 0 ]
}

@test "the letters of nccl-tests mean what they mean there" {
  run "$DYNAMICCL_BIN" bench reduce --hostccl -b 4K -e 4K -r all -u 3 -m 2 -z 3 -y 1 -a 3 -S 1 -M 1 -N 2 -c 2 -n 4 -I 1 -K 1 --rounds 1 --singles 20
  [ "$status" -eq 0 ]
  [[ "$output" == *"unalign: 3"* && "$output" == *"i_cv%"* && "$output" == *"Resident memory"* ]]
  [ "$(grep -cE '^ +4096 +1024 +float +sum +[01] ' <<<"$output")" -eq 4 ]
  for refused in "-G 1" "-D 1" "-V 4" "-p 0" "-x 1" "-K 1" "-o nand" "-d fp4" "-r 7"; do
    run "$DYNAMICCL_BIN" bench reduce --hostccl -b 4K -e 4K $refused
    [ "$status" -eq 2 ]
    [[ "$output" == *"${refused%% *}"* && "$output" == *"hint:"* ]]
  done
}

@test "bench writes JSON on request" {
  run "$DYNAMICCL_BIN" bench all_reduce --hostccl -b 1K -e 4K -f 4 -n 3 --rounds 1 --singles 20 --json -
  [ "$status" -eq 0 ]
  echo "$output" | python3 -c 'import json,sys; d=json.load(sys.stdin); assert [r["bytes"] for r in d["rows"]]==[1024,4096] and d["ranks"]==2'
  run "$DYNAMICCL_BIN" bench all_reduce --hostccl -b 1K -e 1K -n 3 --rounds 1 --singles 20 -J out.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"Avg bus bandwidth"* ]]
  python3 -c 'import json; d=json.load(open("out.json")); assert d["rows"][0]["out_of_place"]["copy_limit_gbps"]>0'
}

@test "bench refuses unknown collectives and sizes with exit code 2" {
  run "$DYNAMICCL_BIN" bench all_to_all_v
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" bench all_reduce -b 1X
  [ "$status" -eq 2 ]
  [[ "$output" == *"hint:"* ]]
}

@test "bench --against times what is here in turns and says what is not" {
  HOME="$PWD" XDG_CACHE_HOME= run "$DYNAMICCL_BIN" bench all_reduce,broadcast --against impi,gloo --python /nowhere/python -b 1K \
    -e 1K --rounds 2 --burst 2 -R 0 --choice best --json out.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"impi: skipped: Intel MPI is not in"*"pip install impi-rt"* && "$output" == *"gloo: skipped"* ]]
  [ "$(grep -cE '^ +(all_reduce|broadcast) +2 +1024 +hostccl ' <<<"$output")" -eq 2 ]
  python3 -c 'import json; d=json.load(open("out.json")); assert [len(c["libraries"][0]["round_us"]) for c in d["cells"]]==[2,2]; assert "/" in d["cells"][0]["libraries"][0]["config"]'
  run "$DYNAMICCL_BIN" bench all_reduce --against mvapich
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" bench all_reduce --against openmpi -c 1
  [ "$status" -eq 2 ]
  run "$DYNAMICCL_BIN" bench all_reduce,reduce -g 2
  [ "$status" -eq 2 ]
}

@test "sweep times the default and every config of hostccl" {
  run "$DYNAMICCL_BIN" sweep --hostccl --sizes 1K,64K --repeats 3 --budget 20s -o s.measurements
  [ "$status" -eq 0 ]
  [[ "$output" == *"AllReduce"* ]]
  python3 - <<'END'
import json
rows = [json.loads(line) for line in open("s.measurements")]
cells = [r for r in rows if r.get("kind") == "row"]
# 4 channel counts of Ring and Tree with 3 protocols and of NVLS for AllReduce, of Ring and NVLS for the two others,
# and the defaults.
assert len(cells) == 2 * (29 + 17 + 17), len(cells)
assert sum(r["default"] for r in cells) == 6
assert all(len(r["us"]) == 3 and min(r["us"]) > 0 for r in cells)
assert all(r["algorithm"] and r["channels"] >= 1 for r in cells)
END
}

# bats test_tags=long
@test "a sweep keeps its budget, and says how far it is and what is left" {
  bats_require_minimum_version 1.5.0
  SECONDS=0
  run --separate-stderr "$DYNAMICCL_BIN" sweep --hostccl --topology two-nodes-ethernet --topology two-nodes-bursty-load \
    --collectives all_reduce --sizes 64K,256K --repeats 1000 --budget 16s -q -o s.measurements
  [ "$status" -eq 0 ]
  [ "$SECONDS" -ge 12 ] && [ "$SECONDS" -le 24 ]
  [[ "$stderr" =~ "dynamiccl: 1 of 2: two-nodes-ethernet: round "[0-9]+" of "[0-9]+", about "[0-9]+" s left" ]]
  [[ "$stderr" =~ "dynamiccl: 2 of 2: two-nodes-bursty-load: round " ]]
}

@test "a sweep's table is JSON where asked, and the report of a run on its topology says the regret" {
  bats_require_minimum_version 1.5.0
  run --separate-stderr "$DYNAMICCL_BIN" sweep --hostccl --topology two-nodes-ethernet --collectives all_reduce --sizes 64K \
    --repeats 4 --budget 20s -o s.measurements --json
  [ "$status" -eq 0 ]
  echo "$output" | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert found["schema"] == 1 and found["output"] == "s.measurements" and found["topologies"] == ["two-nodes-ethernet"]
row, = found["rows"]
assert (row["collective"], row["bytes"]) == ("AllReduce", 65536) and row["best_us"]["median"] > 0 and row["default_us"]["repeats"] == 2
assert found["measured"] == sum(json.loads(line).get("kind") == "row" for line in open("s.measurements")) > 1'
  for choices in "" "--policy starter"; do  # Without a tuner, the record lacks the number of nodes.
    # shellcheck disable=SC2086
    "$DYNAMICCL_BIN" record -q --hostccl -o run.ctrace -n 2 --topology two-nodes-ethernet $choices -- \
      "$DYNAMICCL_BIN" bench all_reduce -b 64K -e 64K -n 5 -w 1 -g 1 --singles 20 > bench.txt
    "$DYNAMICCL_BIN" report run.ctrace s.measurements --json > report.json
    python3 - <<'END'
import json
regret, = json.load(open("report.json"))["runs"][0]["regret"]
row, = [r for r in regret["rows"] if r["bytes"] == 65536]
assert regret["topology"] == "two-nodes-ethernet" and row["calls"] >= 5, regret
assert 0 < regret["counted_calls"] <= regret["calls"] and min(regret[k] for k in ("chosen_s", "default_s", "best_s")) > 0, regret
END
  done
  "$DYNAMICCL_BIN" report run.ctrace s.measurements -o report.html
  grep -q "<h3>Regret" report.html
}

@test "what the sweep forces is what runs" {
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING NCCL_DEBUG_FILE="$PWD/log.%p" run "$DYNAMICCL_BIN" sweep --hostccl \
    --sizes 64K --collectives all_reduce --repeats 2 -o s.measurements
  [ "$status" -eq 0 ]
  # Ring and Tree have 3 protocols and NVLS has one, with 1, 2, 4 and 8 channels each.
  configs=$(cat log.* | grep -o 'AllReduce: 65536 Bytes -> .*' | sort -u | wc -l)
  [ "$configs" -eq 28 ]
}

@test "the default of a sweep has the channels that the library takes by itself" {
  "$DYNAMICCL_BIN" sweep --hostccl -q --sizes 1M --collectives all_gather,all_reduce --repeats 2 -o s.measurements
  for collective in AllGather AllReduce; do
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING NCCL_DEBUG_FILE="$PWD/$collective.%p" "$DYNAMICCL_BIN" bench \
      "$(sed 's/\(.\)\([A-Z]\)/\1_\2/; s/.*/\L&/' <<<"$collective")" --hostccl -b 1M -e 1M -n 1 -g 2 --rounds 1 --singles 1
    last=$(grep -ho "$collective: .*channel{Lo..Hi}={0..[0-9]*" "$collective".* | grep -v ' 8 Bytes' | grep -o '[0-9]*$' | sort -u)
    python3 - "$collective" "$last" <<'END'
import json, sys
rows = [json.loads(line) for line in open("s.measurements")]
default, = [r for r in rows if r.get("default") and r["collective"] == sys.argv[1]]
assert str(default["channels"] - 1) == sys.argv[2], (default, sys.argv)
END
  done
}

@test "sweep needs a file and refuses pins" {
  run "$DYNAMICCL_BIN" sweep --hostccl
  [ "$status" -eq 2 ]
  NCCL_ALGO=Ring run "$DYNAMICCL_BIN" sweep --hostccl -o s.measurements
  [ "$status" -eq 2 ]
  [[ "$output" == *"unset NCCL_ALGO"* ]]
}

@test "what the user got wrong ends with exit code 2 and says what" {
  run "$DYNAMICCL_BIN" sweep --hostccl --topology nonesuch -o s.measurements
  [ "$status" -eq 2 ]
  [[ "$output" == *"nonesuch"* ]]
  run "$DYNAMICCL_BIN" sweep --hostccl -o nowhere/s.measurements
  [ "$status" -eq 2 ]
  NCCL_ALGO=Tree run "$DYNAMICCL_BIN" bench all_gather --hostccl -b 1K -e 1K
  [ "$status" -eq 2 ]
  [[ "$output" == *"NCCL_ALGO was set to Tree"* ]]
}

@test "an active sweep that is killed goes on, with a torn last record too" {
  sweep=("$DYNAMICCL_BIN" sweep --hostccl --order active --sizes 1K,64K --repeats 4 --budget 40s -q -o a.measurements)
  "${sweep[@]}" & pid=$!
  for _ in $(seq 600); do
    [ -f a.measurements.journal ] && [ "$(grep -c '"kind":"row"' a.measurements.journal)" -ge 5 ] && break
    read -rt 0.1 <> <(:) || true
  done
  kill -9 $pid
  wait $pid || true
  [ ! -f a.measurements ]
  printf '0123456789abcdef {"kind":"ro' >> a.measurements.journal
  run "${sweep[@]/1K,64K/1K}"
  [ "$status" -eq 2 ]
  [[ "$output" == *"is of another sweep"* ]]
  run "${sweep[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"goes on after"*"whose last record was torn"* ]]
  [ ! -f a.measurements.journal ]
  run "$DYNAMICCL_BIN" sweep --rehearse a.measurements --order grid --budget 1s -q -o b.measurements
  [ "$status" -eq 0 ]
}

@test "a sweep whose topologies the measurements could not tell apart is refused before it measures" {
  mkdir a b
  for folder in a b; do printf 'version = 1\nnodes = 2\n' > $folder/rack.toml; done
  for order in rounds active; do
    run "$DYNAMICCL_BIN" sweep --hostccl --topology a/rack.toml --topology b/rack.toml --order $order --budget 5s -o s.measurements
    [ "$status" -eq 2 ]
    [[ "$output" == *"'a/rack.toml' and 'b/rack.toml' would both be topology 'rack' of the measurements"*"hint: "* ]]
    [ ! -e s.measurements ] && [ ! -e s.measurements.journal ]
  done
}
