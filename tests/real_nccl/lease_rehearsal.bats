#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Rehearses benchmarks/gpu/lease.sh: all parts of a lease run over NVIDIA's NCCL and the CUDA stand-in instead of a GPU.
# PyTorch's jobs are small and run over hostccl. A fault of the script that is found here costs no minutes of a GPU.

load release

@test "a lease is rehearsed whole: each part ends well, and what comes home makes a page" {
  [ -n "$CUDA_INCLUDE" ] || skip "no CUDA headers: nvcc was not found"
  cd "$BATS_TEST_TMPDIR"
  "$BUILD/tests/standin_environment" 2.32.3 one_h100 "$BATS_TEST_TMPDIR" >standin.env 2>why || not_run $?
  # The script's time limits are scaled by 4, because other tests may share the cores.
  run env PATH="$(dirname "$TORCH_PYTHON"):$PATH" CUDA_HOME="${CUDA_INCLUDE%/include}" \
    "$SOURCE/benchmarks/gpu/lease.sh" -o out --home "$BUILD" --rehearse standin.env --scale 4 --seconds 800 --archive home.tgz
  echo "$output"
  [ "$status" -eq 0 ]
  for part in machine device tables record steps zero measure newest hour wide adaptive; do
    [[ "$output" == *"== $part: exit code 0 "* ]]
  done
  tar -xzf home.tgz
  # The job compared several settings, NCCL's costs were written, and both jobs were recorded.
  grep -q '"ring/simple/8"' work/ab-sockets-ddp.json
  grep -q '"ring/simple/16"' work/ab-wide-ddp.json
  [ "$(ls work/table-2.32.3-*.csv | wc -l)" -ge 3 ]
  "$BUILD/bin/dynamiccl" trace show work/fsdp2.ctrace | grep -q 'ReduceScatter'
  run "$SOURCE/benchmarks/gpu/page.py" work
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"ring/simple/8"* ]]
}
