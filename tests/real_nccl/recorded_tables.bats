#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checks that NCCL does over the stand-in what it did on an H100. recorded/ holds the cost tables and choices of two
# ranks that shared an H100 over loopback sockets on 2026-11-26 (docs/results/gpu.md has the method). Every number of
# the tables must be the same.

load release

setup() {
  cd "$BATS_TEST_TMPDIR"
  recorded="$SOURCE/tests/real_nccl/recorded/h100-sockets"
}

# Runs the benchmark and the plugin that were run on the H100 (benchmarks/gpu/lease.sh, part tables).
run_over_standin() {
  local collective standin
  mapfile -t standin <standin.env
  g++ -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -o probe.so "$SOURCE/benchmarks/gpu/probe_plugin.cc"
  for collective in all_reduce all_gather reduce_scatter; do
    timeout 120 env -i PATH="$PATH" "${standin[@]}" NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo NCCL_TUNER_PLUGIN="$PWD/probe.so" \
      PROBE_TABLE="$PWD/table" NCCL_DEBUG_FILE="$PWD/nccl-%p.log" "$BUILD/bin/dynamiccl" bench "$collective" --no-hostccl -g 2 -b 8 -e 256M \
      -f 8 -n 1 -w 1 -c 0 --rounds 1 --singles 0
  done
}

same_as_recorded() { # RELEASE
  "$BUILD/tests/standin_environment" "$1" one_h100 "$BATS_TEST_TMPDIR" >standin.env 2>why || not_run $?
  run_over_standin >bench.log 2>&1 || { cat bench.log; return 1; }
  diff <(grep -v '^#' "$recorded-$1.tables.csv") <(sort -u table-*.csv)
  diff "$recorded-$1.choices.txt" <(sed -nE 's/.*INFO ([A-Za-z]+): ([0-9]+) Bytes -> Algo (\S+) proto (\S+) channel\{Lo\.\.Hi\}=\{([0-9]+)\.\.([0-9]+)\}.*/\1 \2 \3 \4 \5..\6/p' nccl-*.log | sort -u)
}

@test "cost tables and choices of NCCL 2.28.9 are those of an H100" { same_as_recorded 2.28.9; }

@test "cost tables and choices of NCCL 2.32.3 are those of an H100" { same_as_recorded 2.32.3; }
