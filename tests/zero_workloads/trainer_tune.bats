#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl run --settings` and `dynamiccl tune` on the trainer. DYNAMICCL_BIN is the program.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
  seq 1 20000 >text
}

trainer() {
  job=("$(dirname "$DYNAMICCL_BIN")/dynamiccl-zero" train --data text --layers 3 --hidden 64 --batch 2 --sequence 32
    --steps 12 --stage "$1" --json losses.json)
}

settings() {
  printf '{"format": "dynamiccl-settings", "version": 1, %s}\n' "$1" > s.json
}

# Prints the loss and the gradient norm of each step with all digits, and the final hash of the parameters.
numbers() {
  python3 -c 'import json
for line in open("losses.json"):
    row = json.loads(line)
    print(row.get("loss_hex"), row.get("gradient_norm"), row.get("parameters_sha256"))'
}

@test "a settings file changes the trainer's calls, and with two ranks no bit of its losses" {
  for stage in 1 2 3; do
    trainer $stage
    "$DYNAMICCL_BIN" run -q -n 2 -- "${job[@]}" > log
    numbers > plain
    [ "$(wc -l < plain)" -ge 12 ]
    settings '"zero": {"bucket_bytes": 65536, "overlap": false}'
    run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- "${job[@]}"
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"zero.bucket_bytes = 65536: in effect: 100 % of the "*" calls of a step"* ]]
    [[ "$stderr" == *"zero.overlap = false: not provable: the trainer has it; it changes no call"* ]]
    numbers > changed
    diff plain changed
  done
  settings '"zero": {"prefetch": false}'
  run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- "${job[@]}"
  [[ "$stderr" == *"zero.prefetch = false: in effect: 100 % of the "* ]]
  numbers > changed
  diff plain changed
}

@test "a setting that the trainer's stage or unit does not have is said not to be in effect" {
  trainer 2
  settings '"zero": {"bucket_bytes": 65536, "prefetch": false}'
  run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- "${job[@]}" --unit parameter
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"zero.bucket_bytes = 65536: not in effect: with --unit parameter there are no buckets"* ]]
  [[ "$stderr" == *"zero.prefetch = false: not in effect: stage 2 gathers no parameters ahead"* ]]
}

@test "a tune tries the trainer's settings, each predicted, and leaves a file that runs" {
  trainer 3
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 1s --try bucket_bytes=64K prefetch=false -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"the ZeRO trainer on 2 ranks"* ]]
  python3 -c 'import json
tried = {row["setting"]: row for row in json.load(open("tune/tune.json"))["tried"]}
for setting in ("bucket_bytes=64K", "prefetch=false"):
    assert tried[setting]["predicted"] > 0, tried
    assert tried[setting]["seen"].startswith("100 % of the "), tried'
  run "$DYNAMICCL_BIN" run -n 2 --settings tune/tuned.settings.json -- "${job[@]}"
  [ "$status" -eq 0 ]
}
