#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Rehearses benchmarks/gpu: whole scripts run over NVIDIA's NCCL and the CUDA stand-in instead of a GPU. Kernels do not
# run, so sums are wrong and times are counts of events. NCCL's choices, the questions to plugins and the answers of the
# scripts are real.

load release

setup() {
  cd "$BATS_TEST_TMPDIR"
  "$BUILD/tests/standin_environment" 2.28.9 one_h100 "$BATS_TEST_TMPDIR" >standin.env 2>why || not_run $?
}

outcomes_of() { # EXPERIMENT
  sed -nE "s/^\{\"experiment\":\"$1\".*\"outcome\":\"([^\"]*)\".*/\1/p" out/results.jsonl | sort | uniq -c | tr -s ' ' | paste -sd,
}

# bats test_tags=long
@test "first_hour asks its questions, and the answers follow from what is seen" {
  [ -n "$CUDA_INCLUDE" ] || skip "no CUDA headers: nvcc was not found"
  run env CUDA_HOME="${CUDA_INCLUDE%/include}" "$SOURCE/benchmarks/gpu/first_hour.sh" -o out --versions 2.28.9 --limit 60 \
    --home "$BUILD" --rehearse standin.env --only "b c d g h forced"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"a rehearsal, nothing was measured"* || "$(cat out/summary.txt)" == *"a rehearsal, nothing was measured"* ]]
  # The runs are whole, and only the sums are wrong.
  [ "$(outcomes_of d)" = " 2 wrong_sums" ]
  [ "$(outcomes_of forced)" = " 8 wrong_sums" ]
  grep -q '(b) .*open: skipped, NCCL_MULTI_RANK_GPU_ENABLE came with 2.30.3' <(paste -sd' ' out/answers.txt)
  grep -A3 '^(c)' out/answers.txt | grep -q 'answer: tuner: yes, profiler: yes'
  grep -A3 '^(d)' out/answers.txt | grep -q 'answer: it leaves the choice'
  grep -A3 '^(forced)' out/answers.txt | grep -q 'answer: 8 of 8 as asked'
}

# bats test_tags=long
@test "measure observes and replays, and says what came of it" {
  mkdir out
  echo 'left by a run with more turns' >out/small_none_7.json
  run "$SOURCE/benchmarks/gpu/measure.sh" --home "$BUILD" -o out --rehearse standin.env --turns 1 --largest 8M --only "observe replay"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"0 failed"* ]]
  # Every arm has the same number of events, and so of microseconds: bench's after each call, and NCCL's own.
  grep -Eq '^ +8 +[0-9.]+ +0.0 +\+0.0 +\+0.0$' out/observe.txt
  grep -q 'NCCL 2.28.9' out/replay.log
  [ ! -e out/small_none_7.json ]
}

@test "scripts refuse what they cannot do, and say what to do" {
  run "$SOURCE/benchmarks/gpu/measure.sh"
  [ "$status" -eq 2 ]
  for part in $(sed -nE 's/.*--only "([^"]*)".*/\1/p' <<<"$output"); do
    grep -q "^measure_$part() {" "$SOURCE/benchmarks/gpu/measure.sh" || { echo "no part named $part"; return 1; }
  done
  run "$SOURCE/benchmarks/gpu/measure.sh" --home /nonexistent
  [ "$status" -eq 3 ]
  [[ "$output" == *"no build with bin/dynamiccl"* ]]
  run "$SOURCE/benchmarks/gpu/zero_on_cuda.sh" --home /nonexistent
  [ "$status" -eq 2 ]
  run "$SOURCE/benchmarks/gpu/carry.sh" "$BUILD" "$BATS_TEST_TMPDIR/carried"
  echo "$output"
  [ "$status" -eq 0 ]
  [ -x carried/bin/dynamiccl ] && [ -e carried/lib/libdynamiccl.so ]
  [ ! -e /usr/include/fmt ] || [ -e carried/include/fmt/format.h ]
  run "$SOURCE/benchmarks/gpu/lease.sh" -o out --home carried --only "machine nothing"
  [ "$status" -eq 2 ]
  [[ "$output" == *"no part 'nothing'"* ]]
  run "$SOURCE/benchmarks/gpu/lease.sh" -o out --home /nonexistent
  [ "$status" -eq 3 ]
}

@test "a lease runs its parts, says which did not end well, and brings the rest home" {
  "$SOURCE/benchmarks/gpu/carry.sh" "$BUILD" carried
  mkdir path
  printf '#!/bin/sh\necho "a GPU of a test, 1.0"\n' >path/nvidia-smi
  chmod +x path/nvidia-smi
  # This Python has neither NCCL nor PyTorch among its packages, so no table can be made.
  printf '#!/bin/sh\nexit 1\n' >path/python3
  chmod +x path/python3
  run env PATH="$PWD/path:$PATH" LEASE_CACHE="$PWD/cache" "$SOURCE/benchmarks/gpu/lease.sh" -o out --home carried --only "machine zero" --seconds 60 --archive home.tgz
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"a GPU of a test"*"== zero: exit code 3"* ]]
  tar -tzf home.tgz | grep -q work/machine.txt
  run env PATH="$PWD/path:$PATH" LEASE_CACHE="$PWD/cache" "$SOURCE/benchmarks/gpu/lease.sh" -o well --home carried --only machine
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" != *"did not end well"* ]]
}

@test "the parts of a lease fit its 25 minutes together" {
  declare -A seconds_of=()
  eval "$(grep -E '^(parts=|declare -A seconds_of=)' "$SOURCE/benchmarks/gpu/lease.sh")"
  local part together=0 whole
  for part in "${parts[@]}"; do together=$((together + seconds_of[$part])); done
  whole="$(sed -nE 's/^out=.* seconds=([0-9]+) .*/\1/p' "$SOURCE/benchmarks/gpu/lease.sh")"
  echo "$together s of parts, $whole s in all"
  [ "${#parts[@]}" -eq "${#seconds_of[@]}" ]
  [ "$together" -le "$whole" ] && [ "$whole" -lt 1500 ]
  # The README must state the same number of seconds.
  grep -q "take $together s at most" "$SOURCE/benchmarks/gpu/README.md"
}

@test "first_hour begins no case after its deadline" {
  [ -n "$CUDA_INCLUDE" ] || skip "no CUDA headers: nvcc was not found"
  run env CUDA_HOME="${CUDA_INCLUDE%/include}" "$SOURCE/benchmarks/gpu/first_hour.sh" -o out --versions 2.28.9 --deadline 0 --rehearse standin.env --only "d"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(outcomes_of d)" = " 2 skipped" ]
  grep -q 'the 0 s of this run were over' out/answers.txt
}

@test "carry takes a build whose programs need no package's library" {
  mkdir path
  printf '#!/bin/sh\necho "\tlibc.so.6 => /lib/libc.so.6 (0x0)"\n' >path/ldd
  chmod +x path/ldd
  run env PATH="$PWD/path:$PATH" "$SOURCE/benchmarks/gpu/carry.sh" "$BUILD" "$BATS_TEST_TMPDIR/carried"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"carried: "*" MiB"* ]]
  [ -z "$(ls carried/lib/carried)" ]
  # The copies have no debug information.
  run readelf -S carried/lib/libdynamiccl.so
  [[ "$output" != *.debug_info* ]]
}
