#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Receipts of seeded misconfigurations and of clean jobs, on NVIDIA's NCCL over the stand-in for CUDA. The tests need
# DYNAMICCL_BIN, DYNAMICCL_SOURCE and BUILD.

judged() { # OPTION...
  status=0
  python3 "$DYNAMICCL_SOURCE/tests/tools/receipt/run_cases.py" "$BUILD" "$@" >out 2>&1 || status=$?
  cat out
  [ "$status" -ne 3 ] || skip "$(tail -1 out)"
  [ "$status" -eq 0 ]
}

@test "what is misspelt is named, and one algorithm by name is not accused" {
  cd "$BATS_TEST_TMPDIR"
  judged --only misspelt
  grep -q '^seeded misconfigurations: \([1-9][0-9]*\) of \1 right$' out
  judged --only 'Ring, 2.28.9'
  grep -q '^clean cases: 1 of 1 without a false statement$' out
}

# bats test_tags=long
@test "seeded misconfigurations are named, and clean jobs are not accused" {
  cd "$BATS_TEST_TMPDIR"
  judged
}
