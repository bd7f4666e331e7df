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
