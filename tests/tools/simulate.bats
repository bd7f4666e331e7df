#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl simulate` from the command line.

setup() {
  cd "$BATS_TEST_TMPDIR"
}

@test "a generated trace is simulated with all its operations" {
  "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=2,hidden=64 --data-parallel 4 --steps 2 -o g.ctrace
  run "$DYNAMICCL_BIN" simulate g.ctrace --system dgx2
  [ "$status" -eq 0 ]
  [[ "$output" == *"AllGather"* && "$output" == *"operations "* ]]
  simulated=$("$DYNAMICCL_BIN" simulate g.ctrace --system dgx-a100 --json | grep -o '"operations": "[0-9a-f]*"')
  [[ "$output" == *"${simulated:15:16}"* ]]
}

@test "a trace without times says that it tells no computing, or takes what is stated" {
  "$DYNAMICCL_BIN" trace generate --framework ddp --model gpt:layers=2,hidden=64 --data-parallel 4 --steps 2 -o g.ctrace
  run "$DYNAMICCL_BIN" simulate g.ctrace
  [ "$status" -eq 0 ]
  [[ "$output" == *" 0.000 ms computing"*"state it with --compute-ms"* ]]
  run "$DYNAMICCL_BIN" simulate g.ctrace --compute-ms 50 --json
  [ "$status" -eq 0 ]
  [[ "$output" == *'"computing": "stated"'*'"compute_ns": 49'* || "$output" == *'"computing": "stated"'*'"compute_ns": 50'* ]]
  run "$DYNAMICCL_BIN" trace show g.ctrace
  [[ "$output" == *"only order the calls"* ]]
}

@test "a file that states no group sizes is refused until --group-size states them" {
  printf 'comm_type,comm_group,msg_size,stage\nCommType.all_reduce,CommGroup.dp_group,1048576,init.model\n' >w.csv
  "$DYNAMICCL_BIN" trace import w.csv -o untold.ctrace
  run "$DYNAMICCL_BIN" trace show untold.ctrace
  [[ "$output" == *"no sizes of some groups"*"--group-size"* ]]
  for command in "simulate untold.ctrace --ranks 8" "simulate untold.ctrace"; do
    # shellcheck disable=SC2086
    run "$DYNAMICCL_BIN" $command
    [ "$status" -ne 0 ]
    [[ "$output" == *"aicb file"*"does not state how many ranks"*"--group-size"* ]]
  done
  run "$DYNAMICCL_BIN" trace import w.csv --group-size 8 -o told.ctrace
  [[ "$output" == *"8, as stated"* ]]
  run "$DYNAMICCL_BIN" simulate told.ctrace
  [ "$status" -eq 0 ]
  [[ "$output" == *"8 ranks"*" ms until the last rank"* && "$output" != *" 0.000 ms until"* ]]
}

@test "communicators of one rank take no time, and simulate says so" {
  printf 'comm_type,comm_group,comm_group_size,msg_size,stage\nCommType.all_reduce,CommGroup.dp_group,1,1048576,init.model\n' >w.csv
  run "$DYNAMICCL_BIN" trace import w.csv --group-size 8 -o one.ctrace
  [[ "$output" == *"--group-size is not used"* ]]
  run "$DYNAMICCL_BIN" simulate one.ctrace --ranks 8
  [ "$status" -eq 0 ]
  [[ "$output" == *"every communicator of the trace has one rank"* ]]
}

@test "an all-to-all waits for its last rank" {
  printf 'comm_type,comm_group,comm_group_size,msg_size,stage\nCommType.all_to_all,CommGroup.ep_group,8,1048576,init.model\n' >w.csv
  "$DYNAMICCL_BIN" trace import w.csv -o w.ctrace
  finished() { "$DYNAMICCL_BIN" simulate w.ctrace --json "$@" | python3 -c 'import json,sys; print(json.load(sys.stdin)["rank_0"]["finished_ns"])'; }
  [ $(($(finished --straggler 3:+5) - $(finished))) -eq 5000000 ]
}

@test "a straggler delays a step by its amount" {
  step() { "$DYNAMICCL_BIN" simulate --framework fsdp2 --model gpt:layers=4 --data-parallel 64 --json "$@" | grep -m1 -o '"finished_ns": [0-9]*' | grep -o '[0-9]*$'; }
  [ $(($(step --straggler 9:+5) - $(step))) -eq 5000000 ]
  [ "$(step --jitter 0.2 --seed 3)" -eq "$(step --jitter 0.2 --seed 3)" ]
  [ "$(step --load 0.5)" -gt "$(step)" ]
}

@test "what cannot be understood is an error that says what to do" {
  for wrong in "" "--framework fsdp2 --algorithm Star" "--framework fsdp2 --straggler x" "--framework fsdp2 --load 2:x" \
    "--framework fsdp2 --accelerator tpu" "--framework fsdp2 --model resnet" "--framework fsdp2 --system none.toml" \
    "--framework fsdp2 --load 1.5" "--framework fsdp2 --straggler 99:2" "--scaling"; do
    # shellcheck disable=SC2086
    run "$DYNAMICCL_BIN" simulate $wrong
    [ "$status" -ne 0 ]
    [[ "$output" == *"error"* || "$output" == *"requires"* ]]
  done
}

@test "a number that is not read to its end is no number" {
  for wrong in "--load 0,5" "--load 1:0,5" "--load 50%" "--load 0.5@10-20ms" "--straggler 1:1,5" "--straggler 1:+5ms"; do
    # shellcheck disable=SC2086
    run "$DYNAMICCL_BIN" simulate --framework fsdp2 --model gpt:layers=4 $wrong
    [ "$status" -eq 2 ]
    [[ "$output" == *"${wrong#* }: not understood"*"hint: "* ]]
  done
}

# Writes a system whose AllReduces on 64 ranks take half to twice the predicted time. It states nothing about other
# collectives.
write_system() {
  cat >half.toml <<'END'
# dynamiccl-system
version = 2
name = "half"
source = "made up"
ranks_per_node = 8
max_channels = 8

[[path]]
algorithm = "Ring"
protocol = "Simple"
base_us = 10.0
intra_hop_us = 1.5
inter_hop_us = 12.0
intra_gbps = 180.0
inter_gbps = 40.0

[[residual]]
collective = "AllReduce"
ranks = 64
bytes = [1024]
log_factor = [0.0]

[[interval]]
collective = "AllReduce"
seen = 0.6931471805599453
seen_cells = 20

# xxh3 unchecked
END
}

@test "an interval is that of the collectives, and says which collective has none" {
  write_system
  zero() {
    "$DYNAMICCL_BIN" trace generate --framework dynamiccl-zero --model gpt:layers=2,hidden=64 --data-parallel "$1" --steps 2 -o z.ctrace
    "$DYNAMICCL_BIN" simulate z.ctrace --system half.toml "${@:2}"
  }
  # The calls follow each other without computing. The bounds of the whole job are therefore half and twice its time,
  # with an error of at most 1 ns per call.
  run zero 64 --json
  [ "$status" -eq 0 ]
  finished=$(grep -m1 -o '"finished_ns": [0-9]*' <<<"$output" | grep -o '[0-9]*$')
  low=$(grep -o '"low_ns": [0-9]*' <<<"$output" | grep -o '[0-9]*$')
  high=$(grep -o '"high_ns": [0-9]*' <<<"$output" | grep -o '[0-9]*$')
  [ $((2 * low - finished)) -le 64 ] && [ $((finished - 2 * low)) -le 64 ]
  [ $((high - 2 * finished)) -le 64 ] && [ $((2 * finished - high)) -le 64 ]
  run zero 64
  [[ "$output" == *" ms if every collective is at one end of its 90 % interval"* ]]
  run zero 32
  [[ "$output" == *"# no interval: half states no interval for AllReduce on 32 ranks of 4 nodes"* ]]
  "$DYNAMICCL_BIN" trace generate --framework ddp --model gpt:layers=2,hidden=64 --data-parallel 64 --steps 2 -o d.ctrace
  run "$DYNAMICCL_BIN" simulate d.ctrace --system half.toml
  [[ "$output" == *"# no interval: half states no interval for "*" on 64 ranks of 8 nodes"* ]]
  run "$DYNAMICCL_BIN" simulate d.ctrace --json
  [[ "$output" == *'"finished_interval": {'*'"unknown": "no errors are stated for dgx-h100"'* ]]
}

@test "advise states between which step times a change lies, or why it cannot" {
  write_system
  "$DYNAMICCL_BIN" trace generate --framework dynamiccl-zero --model gpt:layers=2,hidden=64 --data-parallel 64 --steps 3 -o z.ctrace
  run "$DYNAMICCL_BIN" advise z.ctrace --system half.toml --step-ms 20 --ranks-per-node 8
  [ "$status" -eq 0 ]
  [[ "$output" == *"no intervals: half states no interval for "*"Gather"* || "$output" == *"no intervals: half states no interval for ReduceScatter"* ]]
  sed -i 's/^\[\[interval\]\]/[[residual]]\ncollective = "AllGather"\nranks = 64\nbytes = [1024]\nlog_factor = [0.0]\n\n[[residual]]\ncollective = "ReduceScatter"\nranks = 64\nbytes = [1024]\nlog_factor = [0.0]\n\n[[interval]]\ncollective = "AllGather"\nseen = 0.5\nseen_cells = 20\n\n[[interval]]\ncollective = "ReduceScatter"\nseen = 0.5\nseen_cells = 20\n\n[[interval]]/' half.toml
  run "$DYNAMICCL_BIN" advise z.ctrace --system half.toml --step-ms 20 --ranks-per-node 8
  [ "$status" -eq 0 ]
  [[ "$output" == *"if every collective is at one end of its 90 % interval"* && "$output" =~ stage\ 0\ -\>\ 1\ +[0-9.]+\ to\ +[0-9.]+ ]]
}

# The sweep's sizes 64K, 68K and 76K are in one size class. The calls have 64K and 65K.
@test "replay shows the swept times of the size that is nearest to the calls" {
  {
    printf '# nThread 1 nGpus 2 minBytes 65536 maxBytes 77824 step: 4096(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n'
    printf '#  Rank  %s Group  0 Pid   1000 on  node device  %s [0x07] NVIDIA H100\n' 0 0 1 1
    printf '#\n#%12s%14s%10s%8s%8s%8s%8s%8s%7s%9s%8s%8s%7s\n' size count type redop root time algbw busbw '#wrong' time algbw busbw '#wrong'
    printf '#%12s%14s%34s%8s%8s%16s%8s%8s\n' '(B)' '(elements)' '(us)' '(GB/s)' '(GB/s)' '(us)' '(GB/s)' '(GB/s)'
    printf '%s %s float sum -1 %s 0.66 0.66 0 %s 0.66 0.66 0\n' 65536 16384 100.0 100.0 69632 17408 200.0 200.0 77824 19456 300.0 300.0
  } >all_reduce.log
  "$DYNAMICCL_BIN" trace import all_reduce.log -o s.measurements
  printf 'comm_type,comm_group,comm_group_size,msg_size,stage\nCommType.all_reduce,CommGroup.dp_group,2,%s,init.model\n' 66560 >w.csv
  printf 'CommType.all_reduce,CommGroup.dp_group,2,65536,init.model\n' >>w.csv
  "$DYNAMICCL_BIN" trace import w.csv -o w.ctrace
  run "$DYNAMICCL_BIN" replay w.ctrace --simulate dgx-h100 --measurements s.measurements --measured-topology all_reduce
  [ "$status" -eq 0 ]
  [[ "$(tr -s ' ' <<<"$output")" == *"AllReduce 64K..80K 2 129K "*" 100.0 100.0"* ]]
  run "$DYNAMICCL_BIN" replay w.ctrace --simulate dgx-h100 --measurements s.measurements --measured-topology other
  [ "$status" -eq 2 ]
  [[ "$output" == *"no topology 'other' to take times from"*"--measured-topology: all_reduce"* ]]
  run "$DYNAMICCL_BIN" replay w.ctrace --simulate dgx_h100
  [ "$status" -eq 2 ]
  [[ "$output" == *"system 'dgx_h100' is neither"*"described: "*"dgx-h100"* ]]
}
