#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the commands of README.md's first section, on the release that every change must pass.

case_by_command() { TMPDIR="$BATS_TEST_TMPDIR" "$BUILD/tests/real_nccl_case" "$@"; }

# Skips the test when the release was not fetched. A release that was fetched and cannot be run is a failure.
needs_release() {
  "$BUILD/tests/standin_environment" 2.28.9 dgx_h100 "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/standin.env" 2>"$BATS_TEST_TMPDIR/why" && return
  local code=$?
  cat "$BATS_TEST_TMPDIR/why"
  [ "$code" -eq 3 ] || return 1
  skip "$(cat "$BATS_TEST_TMPDIR/why")"
}

@test "a world is run and each call's choice printed" {
  needs_release
  run case_by_command 2.28.9 dgx_h100 2x8 1048576
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"NCCL 2.28.9, dgx_h100, 2x8: 16 coll channels"* ]]
  [ "$(grep -cE '^[A-Z][A-Za-z]+ 1048576 B .* channels$' <<<"$output")" -eq 5 ]
  grep -q "NCCL version 2.28.9" "$(sed -n 's/^log: //p' <<<"$output")"
}

@test "the user's variables reach NCCL" {
  needs_release
  run case_by_command 2.28.9 dgx_h100 2x8 1048576 NCCL_ALGO=Ring NCCL_PROTO=Simple
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(grep -c ' B RING/SIMPLE/' <<<"$output")" -eq 5 ]
}

@test "a machine of one's own is read from its file" {
  needs_release
  sed 's/^adapters_at.*/adapters_at = 0 4/' "$SOURCE/tests/real_nccl/machines/dgx_h100.machine" >"$BATS_TEST_TMPDIR/mine.machine"
  run case_by_command 2.28.9 "$BATS_TEST_TMPDIR/mine.machine" 2x8 1048576
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" != *": 16 coll channels"* ]]
}

@test "the program of README.md runs" {
  needs_release
  cd "$BATS_TEST_TMPDIR"
  sed -n "/^    cat >.tmp.mine.cc/,/^    END/p" "$SOURCE/tests/real_nccl/README.md" | sed '1d;$d' >mine.cc
  nccl="$(sed -n 's/^LD_PRELOAD=.*:\(.*libnccl.so.2\)$/\1/p' standin.env)"
  g++ -std=c++20 -I"$SOURCE" mine.cc -o mine "$nccl"
  mapfile -t environment <standin.env
  run timeout 60 env -i "${environment[@]}" NCCL_DEBUG=WARN ./mine
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"init: no error"*"AllReduce: no error"* ]]
}

@test "what cannot be run says why" {
  run case_by_command 2.28 dgx_h100 2x8
  [ "$status" -eq 2 ]
  run case_by_command 2.28.9 no_such_machine 2x8
  [ "$status" -eq 2 ]
  [[ "$output" == *"there is no "*"/no_such_machine.machine"* ]]
  run case_by_command 2.1.0 dgx_h100 2x8
  [ "$status" -eq 3 ]
  [[ "$output" == *"run: tools/setup/fetch_nccl.sh 2.1.0"* ]]
}
