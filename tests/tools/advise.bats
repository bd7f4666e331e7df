#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl advise` from the command line.

setup() {
  cd "$BATS_TEST_TMPDIR"
  "$DYNAMICCL_BIN" trace generate --framework dynamiccl-zero --model gpt:layers=2,hidden=64,vocabulary=256,head_bias=true \
    --data-parallel 4 --set stage=2,bucket_bytes=65536 --steps 3 -o z.ctrace
}

@test "a job is recognised by its labels and every change has a step time and a way to set it" {
  run "$DYNAMICCL_BIN" advise z.ctrace --system dgx-a100 --step-ms 20
  [ "$status" -eq 0 ]
  [[ "$output" == *"ZeRO stage 2"* && "$output" == *"--stage 3"* && "$output" == *"bucket_bytes 64K -> 1M"* ]]
  run "$DYNAMICCL_BIN" advise z.ctrace --system dgx-a100 --step-ms 20 --json
  [ "$status" -eq 0 ]
  [[ "$output" == *'"share_of_calls": 1.0'* && "$output" == *'"how": "--stage 3"'* ]]
}

@test "the trainer's options name the job, a framework does too" {
  run "$DYNAMICCL_BIN" advise z.ctrace --system dgx-a100 --step-ms 20 -- --stage 2 --layers 2 --hidden 64 --bucket-bytes 64K --sequence 1024
  [ "$status" -eq 0 ]
  [[ "$output" != *"only"*"of the recorded calls"* && "$output" == *"unit block -> parameter"* ]]
  "$DYNAMICCL_BIN" trace generate --framework ddp --model resnet --data-parallel 8 --steps 4 -o d.ctrace
  run "$DYNAMICCL_BIN" advise d.ctrace --system dgx-a100 --step-ms 100 --framework ddp --model resnet
  [ "$status" -eq 0 ]
  [[ "$output" == *"bucket_cap_mb=100"* && "$output" == *"bf16_compress_hook"* ]]
}

@test "what is missing is an error that says what to do" {
  run "$DYNAMICCL_BIN" advise z.ctrace
  [ "$status" -ne 0 ]
  [[ "$output" == *"DYNAMICCL_TIMES=all"* ]]
  run "$DYNAMICCL_BIN" advise z.ctrace --system dgx-a100 --step-ms 20 --measure
  [ "$status" -ne 0 ]
  [[ "$output" == *"no trainer to run"* ]]
  run "$DYNAMICCL_BIN" advise z.ctrace --system dgx-a100 --step-ms 20 --framework fsdp2 --tensor-parallel 3
  [ "$status" -eq 2 ]
  [[ "$output" == *"--tensor-parallel 3: does not divide 4 ranks"* ]]
  for wrong in "--system none.toml" "--system dgx-a100 --framework nobody" "--system dgx-a100 --step-ms 0" "--model gpt"; do
    # shellcheck disable=SC2086
    run "$DYNAMICCL_BIN" advise z.ctrace $wrong
    [ "$status" -ne 0 ]
  done
}
