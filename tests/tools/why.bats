#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `dynamiccl why` from the command line.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  "$DYNAMICCL_BIN" trace generate --framework dynamiccl-zero --model gpt:layers=2,hidden=64,vocabulary=256,head_bias=true \
    --data-parallel 4 --set stage=2,bucket_bytes=65536 --steps 4 -o z.ctrace
}

@test "a trace is one screen of at most 100 columns, a page and data" {
  run "$DYNAMICCL_BIN" why z.ctrace -o z.html
  [ "$status" -eq 0 ]
  [[ "$output" == *"It is ZeRO stage 2 by its labels"* && "$output" == *"Next"* ]]
  [ "${#lines[@]}" -lt 40 ]
  [ "$(printf '%s\n' "$output" | awk '{ if (length($0) > most) most = length($0) } END { print most }')" -le 100 ]
  [[ "$(<z.html)" == *"ZeRO stage 2 by its labels"* ]]
  run bash -c '"$DYNAMICCL_BIN" why z.ctrace --json | python3 -c "
import json, sys
answer = json.load(sys.stdin)
assert answer[\"schema\"] == 1 and answer[\"files\"][0][\"path\"] == \"z.ctrace\"
assert [part[\"id\"] for part in answer[\"parts\"]][0] == \"job\"
"'
  [ "$status" -eq 0 ]
}

@test "files that users have at hand and that are not read are named, with what to do" {
  python3 -c '
import json, os, pickle
dump = json.load(open(os.environ["DYNAMICCL_SOURCE"] + "/traces/samples/flight_recorder_rank_1.json"))
pickle.dump(dump, open("nccl_trace_rank_1", "wb"), protocol=2)'
  for command in "why nccl_trace_rank_1" "hang nccl_trace_rank_1" "trace import nccl_trace_rank_1 -o x.ctrace"; do
    run "$DYNAMICCL_BIN" $command
    [ "$status" -eq 2 ]
    [[ "$output" == *"nccl_trace_rank_1: a pickled dump of PyTorch"*"flight_recorder_to_json.py nccl_trace_rank_1 >"* ]]
  done
  python3 "$DYNAMICCL_SOURCE/traces/import/flight_recorder_to_json.py" nccl_trace_rank_1 >nccl_trace_rank_1.json
  run "$DYNAMICCL_BIN" why nccl_trace_rank_1.json
  [ "$status" -eq 0 ]
  echo '[rank0]:[E1129 10:10:00 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1234)' >train.err
  run "$DYNAMICCL_BIN" why train.err
  [ "$status" -eq 2 ]
  [[ "$output" == *"a log of PyTorch in which a collective timed out"*"docs/hang.md"* ]]
  printf 'SQLite format 3\0' >report.sqlite
  run "$DYNAMICCL_BIN" why report.sqlite
  [ "$status" -eq 2 ]
  [[ "$output" == *"an SQLite database, as Nsight Systems exports one, which is not read"*"torch.profiler"* ]]
}

@test "hang takes the output of a record that still runs, and its folder" {
  mkdir running
  cp z.ctrace 'running/job.ctrace~vm.7.part'
  for path in running/job.ctrace running; do
    run "$DYNAMICCL_BIN" hang "$path"
    [ "$status" -eq 0 ]
    [[ "$output" == *"nothing differs: all ranks issued the same calls"*"waits outside of NCCL's functions"* ]]
  done
  run "$DYNAMICCL_BIN" hang running/other.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"running/other.ctrace"* ]]
}

@test "hang leaves out what a copy of a trace says again" {
  cp "$DYNAMICCL_SOURCE/traces/samples/standing_job.ctracez" a.ctracez
  cp a.ctracez b.ctracez
  run "$DYNAMICCL_BIN" hang a.ctracez b.ctracez
  [ "$status" -eq 1 ]
  [[ "$output" == *"left out: b.ctracez: process 14898 (rank 2) was read before"* ]]
  [[ "$output" == *"4 processes, 1 communicators, 12 calls compared"* ]]
}

@test "report says what to do with JSON of another tool" {
  for file in flight_recorder_rank_1.json execution_trace.json; do
    run "$DYNAMICCL_BIN" report "$DYNAMICCL_SOURCE/traces/samples/$file" -o r.html
    [ "$status" -eq 2 ]
    [[ "$output" == *"$file: not a demo result"*"hint: "*"dynamiccl why FILE"* ]]
  done
}

@test "hang takes a folder of Flight Recorder dumps" {
  mkdir dumps
  cp "$DYNAMICCL_SOURCE/traces/samples/flight_recorder_rank_1.json" dumps/nccl_trace_rank_1
  run "$DYNAMICCL_BIN" hang dumps
  [ "$status" -eq 1 ]
  [[ "$output" == *"there is no trace of rank 0 of 2"* ]]
}

@test "a file that says nothing is an error that says what is read" {
  echo "no collectives here" >notes.txt
  run "$DYNAMICCL_BIN" why notes.txt
  [ "$status" -eq 2 ]
  [[ "$output" == *"notes.txt: no known format"* && "$output" == *"hint: what is read: traces"* ]]
  mkdir folder
  run "$DYNAMICCL_BIN" why folder
  [ "$status" -eq 2 ]
  [[ "$output" == *"folder: no file in it"* ]]
  cp notes.txt folder
  : >folder/empty.err
  run "$DYNAMICCL_BIN" why folder
  [ "$status" -eq 2 ]
  [[ "$output" == *"folder: no file in it of a kind that is read"*"hint: name one of the files"* ]]
  printf '\200\002pg_config entries' >folder/nccl_trace_rank_1
  run "$DYNAMICCL_BIN" why folder
  [ "$status" -eq 2 ]
  [[ "$output" == *"left out: folder/nccl_trace_rank_1: a pickled dump"*"hint: "*"flight_recorder_to_json.py folder/nccl_trace_rank_1 >"* ]]
  printf 'PK\003\004' >folder/checkpoint.pt
  cp z.ctrace folder
  run --separate-stderr "$DYNAMICCL_BIN" why folder
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"left out: folder/checkpoint.pt: byte 0: a zip archive, which is not read"*"left out: folder/empty.err: the file is empty"* ]]
  [[ "$stderr" == *"left out: folder/notes.txt: no known format"* ]]
  [[ "$output" == *"ZeRO stage 2"* ]]
  run "$DYNAMICCL_BIN" why z.ctrace z.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"give one file of each rank of one job"* ]]
  run "$DYNAMICCL_BIN" why
  [ "$status" -eq 2 ]
}

@test "a log of a job that failed before its first call shows a known fault of its release" {
  {
    echo 'host:100:100 [0] NCCL INFO NCCL version 2.26.5+cuda12.8'
    echo 'host:100:101 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 18000 commId 0xabc - Init START'
    echo 'host:100:101 [0] graph/search.cc:1097 NCCL WARN Could not find NET with id 0'
  } >nccl.log
  run "$DYNAMICCL_BIN" why nccl.log
  [ "$status" -eq 0 ]
  [[ "$output" == *"Known faults of this release of NCCL"*"NVIDIA/nccl#1748"* ]]
  [[ "$(tr -s ' \n' ' ' <<<"$output")" == *"NCCL 2.27.3 does not have it; reported to help: NCCL_PXN_DISABLE=1"* ]]
  [[ "$output" == *"no call is logged"*"dynamiccl receipt nccl.log"* ]]
  sed -i s/2.26.5/2.27.3/ nccl.log
  run "$DYNAMICCL_BIN" why nccl.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"no call in this log"* ]]
}

@test "dumps of a job that stands still name the rank that is behind" {
  python3 - <<'END'
import json

for rank, calls in ((0, 20), (1, 18)):
    entries = [{"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": i, "p2p_seq_id": 0, "op_id": i,
                "profiling_name": "nccl:all_reduce", "time_created_ns": 10**18 + 10**6 * i, "input_sizes": [[1024]],
                "input_dtypes": ["Float"], "output_sizes": [[1024]], "output_dtypes": ["Float"], "state": "scheduled",
                "retired": False, "timeout_ms": 600000, "is_p2p": False} for i in range(1, calls + 1)]
    dump = {"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "entries": entries, "rank": rank}
    with open(f"dump_rank_{rank}.json", "w", encoding="utf-8") as file:
        json.dump(dump, file)
END
  run "$DYNAMICCL_BIN" hang dump_rank_0.json dump_rank_1.json
  [ "$status" -eq 1 ]
  [[ "$output" == *"behind: communicator"* && "$output" == *"rank 1 did not issue call 18: AllReduce of 4K"* ]]
  run "$DYNAMICCL_BIN" why dump_rank_0.json dump_rank_1.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"What is wrong"* && "$output" == *"dynamiccl hang dump_rank_0.json dump_rank_1.json"* ]]
  # The buffer of rank 0 was full. Its dump begins at call 4, and that of rank 1 at call 0.
  python3 - <<'END'
import json

dump = json.load(open("dump_rank_0.json"))
dump["entries"] = dump["entries"][4:]
for entry, number in zip(dump["entries"], range(4, 20)):
    entry["input_sizes"] = entry["output_sizes"] = [[1000 + number]]
json.dump(dump, open("dump_rank_0.json", "w"))
dump = json.load(open("dump_rank_1.json"))
for entry, number in zip(dump["entries"], range(18)):
    entry["input_sizes"] = entry["output_sizes"] = [[1000 + number]]
json.dump(dump, open("dump_rank_1.json", "w"))
END
  run "$DYNAMICCL_BIN" hang dump_rank_0.json dump_rank_1.json
  [ "$status" -eq 1 ]
  [[ "$output" == *"behind: communicator"*"rank 1 did not issue call 18: AllReduce of "* && "$output" != *"mismatch"* ]]
  echo nothing >notes.txt
  run "$DYNAMICCL_BIN" hang notes.txt
  [ "$status" -ne 0 ]
  [[ "$output" == *"notes.txt"* ]]
  run "$DYNAMICCL_BIN" hang z.ctrace notes.txt
  [ "$status" -eq 0 ]
  [[ "$output" == *"left out: notes.txt"*"nothing differs: all ranks whose files could be read issued"* ]]
  "$DYNAMICCL_BIN" hang z.ctrace notes.txt --json > hang.json
  python3 -c 'import json; left, = json.load(open("hang.json"))["left_out"]; assert left.startswith("notes.txt: "), left'
}

@test "a profile without NCCL says what it shows, and an archive what it is" {
  python3 - <<'END'
import json
import tarfile

STEP = 10000
def event(category, name, begin, length, **more):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 1, "ts": begin, "dur": length, "args": more}

def write(path, events):
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(head | {"traceEvents": events}, file)

size = {"Input type": ["float"], "Input Dims": [[1 << 20]]}
write("gloo.json", [event("user_annotation", "gloo:all_reduce", STEP * i, 800, **size) for i in range(8)])
write("alone.json", [event("kernel", "gemm", STEP * i, STEP // 4) for i in range(8)])
with tarfile.open("all.tar.gz", "w:gz") as archive:
    archive.add("gloo.json")
END
  run "$DYNAMICCL_BIN" why gloo.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"2 ranks, of which rank 0 is here; gloo."* && "$output" == *"gloo is no NCCL"* ]]
  [[ "$output" == *"AllReduce of 4M among 2 ranks"* && "$output" == *"median 800 us"* && "$output" != *NCCL_DEBUG* ]]
  run "$DYNAMICCL_BIN" why alone.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"no collective was called"* && "$output" == *"27.6 % computing"* && "$output" == *perfetto* ]]
  run "$DYNAMICCL_BIN" why all.tar.gz
  [ "$status" -eq 2 ]
  [[ "$output" == *"a tar archive"*"begins with 'gloo.json'"*"tar -xf"* ]]
}

@test "a profile without sizes is not judged by them: no stage, no bytes" {
  python3 - <<'PROFILE' >profile.json
import json

events = []
for step in range(5):
    begin = 1000 * step
    events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": begin, "dur": 1000})
    for call in range(20):
        at, number = begin + 5 + 40 * call, 100 * step + call
        launch = {"correlation": number, "External id": number}
        events += [
            {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 1, "tid": 2, "ts": at, "dur": 10, "args": {"External id": number}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": at + 1, "dur": 5, "args": launch},
            {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "pid": 0, "tid": 7, "ts": at + 15, "dur": 20,
             "args": {"stream": 7, "device": 0, "correlation": number}}]
print(json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, "traceEvents": events}))
PROFILE
  run "$DYNAMICCL_BIN" why profile.json
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"100 AllReduce (unknown size)"*"A step is 20 collectives"* ]]
  [[ "$output" != *"LSTM"* && "$output" != *"GB/s"* ]]
}

@test "times of one rank alone are not sent to calibrate, which has nothing to fit" {
  cat >all_reduce_perf.log <<'END'
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4242 on      node device  0 [0000:01:00] NVIDIA H100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1     5.30  197.84    0.00      0     1.82  576.14    0.00      0
END
  run "$DYNAMICCL_BIN" why all_reduce_perf.log
  [ "$status" -eq 0 ]
  [[ "$output" == *"two ranks or more"* && "$output" != *"dynamiccl calibrate"* ]]
}

@test "a name that is not UTF-8 is shown, as JSON too" {
  name="$(printf 'run\xff.ctrace')"
  cp z.ctrace "$name"
  "$DYNAMICCL_BIN" why "$name" --json > why.json
  python3 -c 'import json; assert json.load(open("why.json", encoding="utf-8"))["files"][0]["path"] == "run\ufffd.ctrace"'
}

@test "a page does not replace the file that was read" {
  cp z.ctrace copy.ctrace
  run "$DYNAMICCL_BIN" why z.ctrace -o ./z.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"'./z.ctrace' is read here, and would be overwritten"*"hint: "* ]]
  run "$DYNAMICCL_BIN" report z.ctrace -o z.ctrace
  [ "$status" -eq 2 ]
  cmp z.ctrace copy.ctrace
  printf '{"traceEvents": []}' > p.json
  run "$DYNAMICCL_BIN" trace import p.json -o p.json
  [ "$status" -eq 2 ]
  [ "$(cat p.json)" = '{"traceEvents": []}' ]
}

@test "a trace that was compressed is an error that says so" {
  gzip -k z.ctrace
  for command in "why z.ctrace.gz" "trace show z.ctrace.gz" "hang z.ctrace.gz"; do
    run "$DYNAMICCL_BIN" $command
    [ "$status" -eq 2 ]
    [[ "$output" == *"z.ctrace.gz: a trace compressed with gzip is not read"* ]]
  done
}

# The second call waits 9 s for another rank. A record holds at most 32 bits of nanoseconds, which are 4.29 s.
@test "times that a trace cuts at 4.29 s are said to be cut" {
  python3 - > p.json <<'PYTHON'
import json
events = []
for i, us in enumerate([1000, 9000000, 1000]):
    args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 4096, "Group size": 2, "correlation": i}
    at = 10000000 * i
    events += [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": at, "dur": 100, "tid": 1, "args": args},
               {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 10, "dur": 5, "tid": 1, "args": {"correlation": i}},
               {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ts": at + 20, "dur": us, "tid": 7, "args": {"correlation": i}}]
print(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": events}))
PYTHON
  run "$DYNAMICCL_BIN" why p.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"longest 4294967 us"*"1 call took 4.29 s or more"* ]]
  run "$DYNAMICCL_BIN" trace import p.json -o p.ctrace
  [ "$status" -eq 0 ]
  [[ "$output" == *"p.json: 1 call took 4.29 s or more: the trace has 4.29 s"* ]]
}

@test "a page beside the traces is no input, and a file that is read is not overwritten" {
  mkdir job
  cp z.ctrace job
  for turn in 1 2; do
    run "$DYNAMICCL_BIN" why job -o job/why.html
    [ "$status" -eq 0 ]
  done
  run "$DYNAMICCL_BIN" why job
  [ "$status" -eq 0 ]
  run "$DYNAMICCL_BIN" why job -o job/z.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"'job/z.ctrace' is read here"* ]]
  cmp z.ctrace job/z.ctrace
}

# The trace has four ranks. A cut in a later section leaves the earlier sections whole.
@test "of a trace that was cut, why and hang say what is lost" {
  "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=2,hidden=64 --data-parallel 4 --steps 20 -o whole.ctrace
  "$DYNAMICCL_BIN" trace archive whole.ctrace -o whole.ctracez
  size=$(stat -c %s whole.ctrace)
  for cut in whole.ctrace:$((size - 1000)) whole.ctrace:$((size * 3 / 4 + 100)) whole.ctracez:$(($(stat -c %s whole.ctracez) * 3 / 4)); do
    head -c "${cut#*:}" "${cut%:*}" >"cut.${cut%:*}"
    run "$DYNAMICCL_BIN" why "cut.${cut%:*}"
    [ "$status" -eq 0 ]
    [[ "$(tr -s ' \n' ' ' <<<"$output")" == *"Part of a file is lost: cut.${cut%:*}: "*" byte "* ]]
    run --separate-stderr "$DYNAMICCL_BIN" hang "cut.${cut%:*}" --json
    [[ "$stderr" == *"left out: cut.${cut%:*}: "*" byte "* ]]
    [[ "$output" == *'"left_out": ['*"cut.${cut%:*}: "* ]]
  done
  run "$DYNAMICCL_BIN" why whole.ctrace
  [[ "$output" != *"Part of a file"* ]]
}

# peak COMMAND... prints the largest memory of the command in KiB.
peak() {
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

# The files have 51 and 102 MB. Only 32 bytes per step may grow; the medians' bins are full in both cases.
@test "the memory for a trace does not grow with its records" {
  for steps in 5000 10000; do
    "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=12,hidden=64 --data-parallel 4 --steps $steps -o g$steps.ctrace
  done
  [ "$(stat -c %s g5000.ctrace)" -gt $((48 << 20)) ]
  small=$(peak "$DYNAMICCL_BIN" why g5000.ctrace)
  large=$(peak "$DYNAMICCL_BIN" why g10000.ctrace)
  echo "$small KiB, $large KiB"
  [ "$small" -lt $((128 << 10)) ]
  [ "$large" -lt $((small + (16 << 10))) ]
}

# Each rank has its own file.
@test "the memory for several files does not grow with their records" {
  for steps in 5000 10000; do
    "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=12,hidden=64 --data-parallel 2 --steps $steps -o g$steps.ctrace
    python3 - g$steps.ctrace <<'END'
import sys
data = open(sys.argv[1], "rb").read()
assert data.count(data[:8]) == 2
for rank, part in enumerate(data.split(data[:8])[1:]):
    open("%s.%d" % (sys.argv[1], rank), "wb").write(data[:8] + part)
END
  done
  small=$(peak "$DYNAMICCL_BIN" why g5000.ctrace.0 g5000.ctrace.1)
  large=$(peak "$DYNAMICCL_BIN" why g10000.ctrace.0 g10000.ctrace.1)
  echo "$small KiB, $large KiB"
  [ "$large" -lt $((small + (16 << 10))) ]
  run "$DYNAMICCL_BIN" why g5000.ctrace.0 g5000.ctrace.1
  several="${output//g5000.ctrace.0 g5000.ctrace.1/g5000.ctrace}"
  [ "$several" = "$("$DYNAMICCL_BIN" why g5000.ctrace)" ]
}
