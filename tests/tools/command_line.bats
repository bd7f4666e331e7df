#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command line of `dynamiccl` as a user types it. DYNAMICCL_BIN is the program, DYNAMICCL_SOURCE the source tree.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

dynamiccl() { "$DYNAMICCL_BIN" "$@"; }

@test "help lists every command of the table, on stdout" {
  run --separate-stderr dynamiccl --help
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  for command in $(grep -o '^DYNAMICCL_COMMAND([a-z]*' "$DYNAMICCL_SOURCE/tools/command_table.def" | cut -d'(' -f2); do
    [[ "$output" == *"  $command "* ]]
  done
}

@test "every command's help starts with its sentence and three examples" {
  for command in $(grep -o '^DYNAMICCL_COMMAND([a-z]*' "$DYNAMICCL_SOURCE/tools/command_table.def" | cut -d'(' -f2); do
    run --separate-stderr dynamiccl "$command" --help
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "Examples:" ]
    [[ "${lines[4]}" == "  "* ]]
  done
}

@test "no command is a usage error with the help on stderr" {
  run --separate-stderr dynamiccl
  [ "$status" -eq 2 ]
  [ -z "$output" ]
}

@test "mistyped command: exit 2 and a suggestion" {
  run dynamiccl docter
  [ "$status" -eq 2 ]
  [[ "$output" == *"did you mean \`dynamiccl doctor\`"* ]]
}

@test "mistyped option: exit 2 and a suggestion" {
  run dynamiccl run --polcy x -- true
  [ "$status" -eq 2 ]
  [[ "$output" == *"--policy"* ]]
}

@test "missing program, absent policy, bad mode and zero ranks are usage errors" {
  run dynamiccl run -n 2
  [ "$status" -eq 2 ]
  [[ "$output" == *"hint:"* ]]
  run dynamiccl run --policy absent.dcpolicy -- true
  [ "$status" -eq 2 ]
  [[ "$output" == *"absent.dcpolicy"* ]]
  run dynamiccl run --mode fast -- true
  [ "$status" -eq 2 ]
  run dynamiccl run -n 0 -- true
  [ "$status" -eq 2 ]
}

@test "unknown home is a usage error that names it" {
  run dynamiccl path --home "$BATS_TEST_TMPDIR"
  [ "$status" -eq 2 ]
  [[ "$output" == *"$BATS_TEST_TMPDIR"* ]]
}

@test "doctor --json is JSON with verdicts, and FAIL gives exit 1" {
  mkdir -p home/lib home/bin && touch home/lib/libdynamiccl.so && chmod 666 home/lib/libdynamiccl.so
  run --separate-stderr dynamiccl doctor --home home --json
  [ "$status" -eq 1 ]
  echo "$output" | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert found["schema"] == 1 and found["ok"] is False
verdicts = {f["subject"]: f["verdict"] for f in found["findings"]}
assert verdicts["Object"] == "FAIL" and verdicts["hostccl"] == "FAIL" and verdicts["Agents"] == "WARN", verdicts
assert all(f["advice"] for f in found["findings"] if f["verdict"] != "OK")'
}

@test "doctor names pins and mistyped settings" {
  NCCL_ALGO=Ring DYNAMICCL_POLICI=x run dynamiccl doctor
  [[ "$output" == *"NCCL_ALGO"* ]]
  [[ "$output" == *"did you mean DYNAMICCL_POLICY"* ]]
}

@test "docs/settings.md is what env --markdown prints" {
  dynamiccl env --markdown > settings.md
  diff settings.md "$DYNAMICCL_SOURCE/docs/settings.md"
}

@test "env --json and version --json are JSON" {
  dynamiccl env --json | python3 -m json.tool > /dev/null
  dynamiccl version --json | python3 -m json.tool > /dev/null
}

@test "help comes within a tenth of a second" {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  for _ in 1 2 3; do
    start=$(date +%s%N); dynamiccl run --help > /dev/null; took=$(( $(date +%s%N) - start ))
    [ "$took" -lt 100000000 ] && return 0
  done
  return 1
}
