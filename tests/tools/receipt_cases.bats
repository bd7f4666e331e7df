#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Receipts of seeded misconfigurations and of clean jobs on NVIDIA's NCCL over the stand-in for CUDA. Needs DYNAMICCL_BIN,
# DYNAMICCL_SOURCE and BUILD.

@test "seeded misconfigurations are named, and clean jobs are not accused" {
  status=0
  python3 "$DYNAMICCL_SOURCE/tests/tools/receipt/run_cases.py" "$BUILD" >out 2>&1 || status=$?
  cat out
  [ "$status" -ne 3 ] || skip "$(tail -1 out)"
  [ "$status" -eq 0 ]
}
