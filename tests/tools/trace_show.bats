#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl trace show` on one long file, which it reads as a stream.

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# 800,000 records of 64 bytes exceed the reader's memory of 48 MiB. `trace merge` reads the whole trace at once.
@test "a file longer than the reader's memory is shown as when it is read whole, in less memory" {
  "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=12,hidden=64 --data-parallel 4 --steps 5000 -o g.ctrace
  [ "$(stat -c %s g.ctrace)" -gt $((48 << 20)) ]
  run python3 - <<'END'
import json, os, resource, subprocess
program = os.environ["DYNAMICCL_BIN"]
shown = subprocess.run([program, "trace", "show", "g.ctrace"], capture_output=True, text=True, check=True).stdout
streamed_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
whole = json.loads(subprocess.run([program, "trace", "show", "g.ctrace", "--json"], capture_output=True, check=True).stdout)
json_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
subprocess.run([program, "trace", "merge", "g.ctrace", "-o", "m.ctrace"], check=True)
whole_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
lines = shown.splitlines()
assert lines[0] == "g.ctrace: %d ranks, %s" % (whole["ranks"], whole["library"]), lines[0]
assert "%d calls of the first rank, %d steps, %d records lost, all processes ended in order" % (
    whole["calls"], whole["steps"], whole["lost"]) in lines, shown
rows = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("  ")}
assert rows == {name: count["calls"] for name, count in whole["collectives"].items()}, rows
assert len(rows) == 3 and whole["steps"] == 5000, rows
assert 2 * streamed_kib < whole_kib and 2 * json_kib < whole_kib, (streamed_kib, json_kib, whole_kib)
END
  echo "$output"
  [ "$status" -eq 0 ]
}
