#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests of `dynamiccl canary` on real releases: ordinary upgrades that must raise nothing, a user's own machine, traffic
# and collectives, and wrong input. They need the same variables as canary.bash.

load canary/canary

# bats test_tags=long
@test "an ordinary upgrade raises nothing grave, is kept, and a damaged kept cell is run again" {
  needs 2.24.3 2.28.9
  run canary 2.24.3 2.28.9 --machine dgx_a100 --world 1x8 --sizes 1M --json
  [ "$status" -eq 0 ]
  first="$output"
  [ "$(ls cache/dynamiccl/canary | wc -l)" -eq 4 ]
  for cell in cache/dynamiccl/canary/*; do sed -i 's/"channels": [0-9]*/"channels": 3/' "$cell"; done
  run canary 2.24.3 2.28.9 --machine dgx_a100 --world 1x8 --sizes 1M --json
  [ "$status" -eq 0 ]
  without_seconds() { python3 -c 'import json,re,sys; print(re.sub(r"\"seconds\": [0-9.e-]+", "", sys.argv[1]))' "$1"; }
  [ "$(without_seconds "$first")" = "$(without_seconds "$output")" ]
  # If the kept cells are whole, the second answer needs no run.
  run timeout 1 "$DYNAMICCL_BIN" canary 2.24.3 2.28.9 --machine dgx_a100 --world 1x8 --sizes 1M
  [ "$status" -eq 0 ]
}

# bats test_tags=long
@test "a library by its path, and rules that restore the old choices" {
  needs 2.24.3 2.28.9
  run canary 2.24.3 "$WHEELS/nccl-2.28.9/nvidia/nccl/lib/libnccl.so.2" --machine pcie_l40s --world 2x8 --connect first-call --rules old.csv
  echo "$output"
  [[ "$output" == *"NCCL 2.24.3 -> 2.28.9"* ]]
  "$DYNAMICCL_BIN" config check old.csv
}

@test "a log of another machine is refused before anything is judged" {
  needs 2.24.3 2.28.9
  printf 'h:1:2 [0] NCCL INFO NCCL version 2.24.3+cuda12.4\nh:1:2 [0] NCCL INFO 99 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer\n' >user.log
  run canary 2.24.3 2.28.9 --machine dgx_a100 --world 1x8 --sizes 1M --log user.log
  echo "$output"
  [ "$status" -eq 2 ]
  [[ "$output" == *"not described well enough: channels: 99 in the log"* ]]
  run canary 2.28.9 2.24.3 --machine dgx_a100 --world 1x8 --sizes 1M --log user.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"is of NCCL 2.24.3, the first release named is 2.28.9"* ]]
}

# job_log RELEASE NAME=VALUE... writes user.log, the log of a job of 16 ranks on two DGX H100, with graphs and tables.
job_log() {
  "$BUILD/tests/real_nccl_case" "$1" dgx_h100 2x8 1048576 NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING CUDA_STANDIN_CONNECT=1 "${@:2}" >case.out
  cp "$(sed -n 's/^log: //p' case.out)" user.log
}

fits() { # OLD NEW LOG... [-- OPTION...]
  run canary "$1" "$2" --machine "${MACHINE:-dgx_h100}" --world 2x8 --sizes 1M --connect first-call --no-remedies --log "${@:3}"
  echo "$output"
}

@test "a release's own log fits on the same machine, whole, of one rank, or cut, and on no other machine" {
  needs 2.24.3 2.28.9
  job_log 2.28.9
  fits 2.28.9 2.24.3 user.log
  [ "$status" -eq 0 ]
  [[ "$output" == *"log: fits; equal to the run here are links of 16 ranks, graphs NVLS Ring Tree of 16 ranks, 16 channels, 16 rings, trees of 16 ranks, 105 entries of the cost table, transports and connected adapters"* ]]
  # Ranks of one process differ by their thread. Only rank 0 logs the rings and the tables. The first thread logs the
  # release.
  thread="$(sed -n 's/ \[0\] NCCL INFO .*rank 0 .* Init START.*//p' user.log | head -1)"
  grep -e "^$thread " -e "NCCL version" user.log >rank0.log
  fits 2.28.9 2.24.3 rank0.log
  [ "$status" -eq 0 ]
  [[ "$output" == *"graphs NVLS Ring Tree of 1 rank, 16 channels, 16 rings, trees of 1 rank"* ]]
  # Lines of different processes cut each other.
  python3 - <<'END'
import random
random.seed(3)
lines = open("user.log").read().split("\n")
with open("mixed.log", "w") as out:
    for one, other in zip(lines[::2], lines[1::2]):
        at = random.randrange(len(one) + 1) if "coll channels" not in one and random.random() < 0.2 else len(one)
        out.write(one[:at] + (other + one[at:] if at < len(one) else "\n" + other) + "\n")
END
  fits 2.28.9 2.24.3 mixed.log
  [ "$status" -eq 0 ]
  # The log ends in the middle of a line and lacks the channels.
  head -c 200000 user.log >half.log
  fits 2.28.9 2.24.3 half.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"half.log: it lacks NCCL's release or channels"*"begins before the communicator is made"* ]]
  # This machine has one adapter less.
  sed 's/^adapters_at.*/adapters_at = 0 1 2 3 4 5 6/' "$DYNAMICCL_SOURCE/tests/real_nccl/machines/dgx_h100.machine" >seven.machine
  MACHINE=./seven.machine fits 2.28.9 2.24.3 rank0.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"links in the topology of 1 rank: 8 NET[50.0], 8 NVL[370.8], 2 SYS[22.0] in the log, 7 NET[50.0]"* ]]
  [[ "$output" == *"Ring graph of 1 rank: "*"8 adapters in the log, "*"7 adapters here"*"hint: give the topology"* ]]
  # The GPUs are in another order. Everything within one node is equal.
  fits 2.28.9 2.24.3 user.log --gpus 1,0,2,3,4,5,6,7
  [ "$status" -eq 2 ]
  [[ "$output" == *"16 of 16 rings, first channel 00"* && "$output" != *"links in"* ]]
  # This world has the same size on more nodes.
  run canary 2.28.9 2.24.3 --machine dgx_h100 --world 4x4 --sizes 1M --log user.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"nodes: 2 in the log, 4 here"*"give the world"* ]]
}

@test "a variable of the job's log that the canary was not given is named" {
  needs 2.24.3 2.28.9
  job_log 2.28.9 NCCL_CROSS_NIC=0
  fits 2.28.9 2.24.3 user.log
  [ "$status" -eq 2 ]
  [[ "$output" == *"Ring graph of 16 ranks: crossNic 0, "*"the job had --env NCCL_CROSS_NIC=0"* ]]
  fits 2.28.9 2.24.3 user.log --env NCCL_CROSS_NIC=0
  [ "$status" -eq 0 ]
}

# bats test_tags=long
@test "the logs of other releases fit" {
  for release in 2.21.5 2.22.3 2.24.3 2.29.2 2.32.3; do
    needs "$release" 2.28.9
    job_log "$release"
    fits "$release" 2.28.9 user.log
    [[ "$output" == *"log: fits; "*"graphs NVLS Ring Tree of 16 ranks"* && "$output" != *"not compared"* ]]
  done
}

# bats test_tags=long
@test "the user's own traffic: its world, its sizes, and what other choices do to its time" {
  needs 2.24.3 2.28.9
  "$DYNAMICCL_BIN" trace generate --framework fsdp2 --model gpt:layers=4 --data-parallel 16 -o job.ctrace
  # NVIDIA/nccl#1946 leaves one adapter of eight, and all calls of the job lose the others.
  run canary 2.24.3 2.28.9 --machine hgx_a100 --trace job.ctrace --connect first-call --no-remedies
  echo "$output"
  [[ "$output" == *"hgx_a100, 2x8"*"traffic: "*" calls of a rank among 16 ranks"* ]]
  [[ "$output" == *"in your trace: 15 of 15 calls a step change their choice, with 100 % of the bytes"* ]]
  [[ "$output" == *"the trace has no times of steps"* && "$output" != *"Broadcast"* ]]
  "$DYNAMICCL_BIN" canary 2.24.3 2.28.9 --machine hgx_a100 --trace job.ctrace --connect first-call --no-remedies --json >answer.json || true
  python3 - <<'END'
import json
answer = json.load(open("answer.json"))
effect = answer["judged"][0]["traffic"]
assert answer["ranks_of_nodes"] == [8, 8], answer["ranks_of_nodes"]
assert effect["calls"] == answer["traffic"]["calls"] > 0 and effect["calls_without_price"] == 0, effect
assert 0.2 < effect["by_table_in_use"] < 5 and 0.2 < effect["by_table_judged"] < 5, effect
model = effect["by_one_model"]
assert 4 < model["us_judged"] / model["us_in_use"] < 8, model
assert model["calls_without_price"] == 0 and model["step_us_judged"] is None, model
grave = {one["kind"] for one in answer["judged"][0]["cells"][0]["differences"] if one["gravity"] == "grave"}
assert grave == {"search", "traffic", "adapters"}, grave
END
  run canary 2.24.3 2.28.9 --machine dgx_a100 --trace job.ctrace --world 1x8
  [ "$status" -eq 2 ]
  [[ "$output" == *"no collectives among 8 ranks in the trace; its communicators: 1 of 16 ranks"* ]]
  run canary 2.24.3 2.28.9 --machine dgx_a100 --trace job.ctrace --sizes 1M
  [ "$status" -eq 2 ]
}

@test "wrong input says what to do" {
  needs 2.28.9
  refused() { run canary "$@"; echo "$output"; [ "$status" -eq 2 ]; }
  refused 2.28.9 1.2.3 --machine dgx_a100
  [[ "$output" == *"tools/setup/fetch_nccl.sh 1.2.3"* ]]
  refused 1.2.3 1.2.4 --machine dgx_a100
  [[ "$output" == *"no NCCL 1.2.3, 1.2.4 in the cache"*"fetch_nccl.sh 1.2.3 1.2.4 "* ]]
  refused 2.28.9 2.28.9 --machine dgx_a1000
  [[ "$output" == *"no machine is called 'dgx_a1000'"* && "$output" == *"dgx_a100"* ]]
  refused 2.28.9 2.28.9 --machine dgx_a100 --world 2x9
  [[ "$output" == *"9 ranks on a node of 8 GPUs"* ]]
  refused 2.28.9 2.28.9 --machine dgx_a100 --world 2
  [[ "$output" == *"'2' is no world"*"such as 2x8"* ]]
  refused 2.28.9 2.28.9 --machine dgx_a100 --ranks 1
  refused 2.28.9 2.28.9 --machine dgx_a100 --env NCCL_TOPO_FILE=x
  [[ "$output" == *"the canary sets it"* ]]
  refused 2.28.9 2.28.9 --machine dgx_a100 --env FOO=1
  head -c 500 "$DYNAMICCL_SOURCE/tests/tools/canary/four_a100_mesh.xml" >cut.xml
  refused 2.28.9 2.28.9 --machine ./cut.xml
  [[ "$output" == *"./cut.xml: "*"NCCL_TOPO_DUMP_FILE"* ]]
  refused 2.28.9 2.28.9 --machine "$DYNAMICCL_BIN"
  [[ "$output" == *"neither a topology of NCCL nor of collect_machine.sh"* ]]
  printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-55\n' >topo
  refused 2.28.9 2.28.9 --machine topo
  [[ "$output" == *"the matrix of \`nvidia-smi topo -m\`, which lacks"*"collect_machine.sh"* ]]
  refused 2.28.9 2.28.9 --machine "$(topology g5)"
  [[ "$output" == *"g5 has no <net>, and 2 nodes need a network"*"--world 1x8"* ]]
  sed 's/speed="100000"/speed="fast"/' "$(topology four_a100_mesh)" >fast.xml
  refused 2.28.9 2.28.9 --machine ./fast.xml
  [[ "$output" == *'./fast.xml: line 12: <net> has speed="fast", which is no number'* ]]
  refused 2.28 v2.28.9-1 --machine dgx_a100
  [[ "$output" == *"2.28: neither a release nor a file"*"three numbers"* ]]
  refused v2.28.9-1 2.28.9 --machine dgx_a100 --sizes 1M,0
  refused 2.28.9 2.28.9 --machine dgx_a100 --stack 5
  [[ "$output" == *"64K to 1T, or unlimited"* ]]
  echo "no library" >libnccl.so.2
  refused 2.28.9 ./libnccl.so.2 --machine dgx_a100
  [[ "$output" == *"not an NCCL library"* ]]
}

# bats test_tags=long
@test "a node that collect_machine.sh described is the machine that NCCL describes" {
  needs 2.24.3 2.25.1
  mesh="$DYNAMICCL_SOURCE/tests/tools/canary/four_a100_mesh.xml"
  python3 "$DYNAMICCL_SOURCE/tests/tools/canary/fabricate_sys.py" "$mesh" node
  ARCH=x86_64 SYSFS="$PWD/node/sys" PROCFS="$PWD/node/proc" PATH="$PWD/node/bin:$PATH" \
    sh "$DYNAMICCL_SOURCE/tools/canary/collect_machine.sh" gdr=1 >four_a100_mesh.inventory
  for machine in "$mesh" ./four_a100_mesh.inventory; do
    canary 2.24.3 2.25.1 --machine "$machine" --world 2x4 --sizes 1M,256M --connect first-call --no-remedies --json >answer.json || true
    # Times differ from run to run. The remains of a crash also differ, hence --connect first-call.
    python3 - answer.json >>answers <<'EOF'
import json, sys
answer = json.load(open(sys.argv[1]))
def stable(value):
    if isinstance(value, dict):
        return {key: stable(one) for key, one in value.items() if key != "seconds"}
    return [stable(one) for one in value] if isinstance(value, list) else value
print(json.dumps(stable(answer), sort_keys=True))
EOF
  done
  [ "$(wc -l <answers)" -eq 2 ]
  [ "$(sort -u answers | wc -l)" -eq 1 ]
  [[ "$(head -1 answers)" == *'"verdict": "worse"'* ]]
  # For a node without NVIDIA's driver, the collector makes nothing up.
  python3 "$DYNAMICCL_SOURCE/tests/tools/canary/fabricate_sys.py" "$mesh" bare --no-driver
  SYSFS="$PWD/bare/sys" PROCFS="$PWD/bare/proc" sh "$DYNAMICCL_SOURCE/tools/canary/collect_machine.sh" >bare.inventory
  run canary 2.24.3 2.25.1 --machine ./bare.inventory
  [[ "$status" -eq 2 && "$output" == *"hint:"* ]]
  [[ "$output" == *"missing: sm and NVLinks of 4 GPUs"* ]]
  head -c 900 bare.inventory >cut.inventory
  run canary 2.24.3 2.25.1 --machine ./cut.inventory
  [ "$status" -eq 2 ]
  [[ "$output" == *"cut after 900 bytes"*"collect it again"* ]]
  run sh "$DYNAMICCL_SOURCE/tools/canary/collect_machine.sh" --help
  [[ "$status" -eq 2 && "$output" == *"neither gdr=0 nor gdr=1"* ]]
  SYSFS=/nowhere run sh "$DYNAMICCL_SOURCE/tools/canary/collect_machine.sh"
  [[ "$status" -eq 1 && "$output" == *"run it on the node itself"* ]]
}

# cell_of ANSWER RELEASE KEY prints the JSON value of KEY in the release's first cell.
cell_of() {
  python3 - "$@" <<'PYTHON'
import json, sys
answer, release, key = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
for one in [answer["in_use"], *answer["judged"]]:
    if one["release"] == release:
        print(json.dumps(one["cells"][0]["cell"][key], sort_keys=True))
PYTHON
}

# bats test_tags=long
@test "only the collectives of the job are judged" {
  needs 2.28.9 2.32.3
  tree=(--env NCCL_ALGO=allreduce:tree --env NCCL_PROTO=Simple)
  run answer 2.28.9 2.32.3 dgx_h100 1x8 --sizes 1M "${tree[@]}"
  [[ "$output" == *"FAILS"*"AllGather"* ]]
  run answer 2.28.9 2.32.3 dgx_h100 1x8 --sizes 1M "${tree[@]}" --collectives allreduce
  echo "$output"
  [[ "$output" != *"FAILS"* && "$output" == *"Tree/Simple"* ]]
  canary 2.28.9 2.32.3 --machine dgx_h100 --world 1x8 --sizes 1M --collectives Broadcast,AllGather --connect first-call --json >answer.json || true
  python3 - <<'PYTHON'
import json
answer = json.load(open("answer.json"))
cell = answer["judged"][0]["cells"][0]["cell"]
assert answer["collectives"] == ["AllGather", "Broadcast"], answer["collectives"]
assert {one["collective"] for one in cell["choices"]} == {"AllGather", "Broadcast"}, cell["choices"]
PYTHON
  run canary 2.28.9 2.32.3 --machine dgx_h100 --collectives AllToAll
  [ "$status" -eq 2 ]
  [[ "$output" == *"'AllToAll' is none that NCCL chooses for"*"AllReduce, AllGather"* ]]
}

# bats test_tags=long
@test "two trays of a GB200 NVL72 are one NVLink domain" {
  needs 2.24.3 2.28.9 2.32.3
  canary 2.24.3 2.28.9 2.32.3 --machine gb200_nvl72 --world 2x4 --sizes 256M --connect first-call --no-remedies --json >answer.json || true
  for release in 2.24.3 2.28.9 2.32.3; do
    [ "$(cell_of answer.json $release end)" = '"passed"' ]
    # No adapter is used, because all ranks reach each other by NVLink.
    [ "$(cell_of answer.json $release adapters)" = "{}" ]
  done
  # NCCL 2.29.7 logs the same on two trays of a GB300 (docs/results/canary.md).
  [ "$(cell_of answer.json 2.32.3 channels) $(cell_of answer.json 2.32.3 nvls_channels)" = "32 24" ]
  canary 2.28.9 2.32.3 --machine gb200_nvl72 --world 2x4 --sizes 256M --connect first-call --no-remedies --env NCCL_MNNVL_ENABLE=0 --json >without.json || true
  [ "$(cell_of without.json 2.32.3 end)" = '"passed"' ]
  [ "$(cell_of without.json 2.32.3 adapters)" != "{}" ]
}

# bats test_tags=long
@test "nodes that are unlike are run as they are, and too many machines are named" {
  needs 2.24.3 2.28.9
  one_nic="$(topology h100_one_nic)"
  canary 2.24.3 2.28.9 --machine dgx_h100 --machine "$one_nic" --sizes 1M --connect first-call --no-remedies --json >answer.json || true
  python3 - <<'PYTHON'
import json
answer = json.load(open("answer.json"))
assert [one["adapters"] for one in answer["nodes"]] == [8, 1], answer["nodes"]
for one in [answer["in_use"], *answer["judged"]]:
    cell = one["cells"][0]["cell"]
    assert cell["end"] == "passed" and cell["ranks_joined"] == 16, cell
    assert sum(name.startswith("1/") for name in cell["adapters"]) == 1, cell["adapters"]
PYTHON
  run canary 2.24.3 2.28.9 --machine dgx_h100 --machine "$one_nic" --world 1x8
  [ "$status" -eq 2 ]
  [[ "$output" == *"2 machines for 1 nodes"* ]]
}

@test "ranks on certain GPUs of a node" {
  needs 2.24.3 2.28.9
  run answer 2.24.3 2.28.9 dgx_a100 2x2 --gpus 0,4 --sizes 1M
  echo "$output"
  [[ "$output" == *"ranks on GPUs 0,4"* && "$output" != *"FAILS"* ]]
  run canary 2.24.3 2.28.9 --machine dgx_a100 --world 2x2 --gpus 0,8
  [ "$status" -eq 2 ]
  [[ "$output" == *"--gpus 0,8: expected numbers from 0 to 7, each once"* ]]
  run canary 2.24.3 2.28.9 --machine dgx_a100 --world 2x2 --gpus 0,0
  [ "$status" -eq 2 ]
  [[ "$output" == *"each once"*"NCCL_MULTI_RANK_GPU_ENABLE=1"* ]]
}

@test "GPUs that do not fit the world are refused, with what would" {
  run canary 2.24.3 2.28.9 --machine dgx_h100 --world 2x4 --gpus 0,1,2,3,4
  [ "$status" -eq 2 ]
  [[ "$output" == *"--gpus 0,1,2,3,4: 5 GPUs for 4 ranks on a node and 8 in all"*"name 4 GPUs, which hold for every node, or 8"* ]]
  run canary 2.24.3 2.28.9 --machine dgx_h100 --gpus 0,2,4,6
  [[ "$status" -eq 2 && "$output" == *"4 GPUs for 8 ranks on a node and 16 in all"*"--world or --ranks says how many"* ]]
  # A user might mean GPUs 4 to 7 as those of the second node.
  run canary 2.24.3 2.28.9 --machine "$(topology four_a100_mesh)" --world 2x4 --gpus 0,1,2,3,4,5,6,7
  [[ "$status" -eq 2 && "$output" == *"--gpus 4,5,6,7: expected numbers from 0 to 3, each once, on node 1"*"each node's GPUs count from 0"* ]]
}

@test "what does not work on a machine is one of three words, and the machine has it" {
  run canary 2.24.3 2.28.9 --machine dgx_h100 --lacks luck
  [ "$status" -eq 2 ]
  [[ "$output" == *"'lacks' knows peer_access, multicast_binding and fabric_handles, not 'luck'"* ]]
  run canary 2.24.3 2.28.9 --machine dgx_a100 --lacks multicast_binding
  [ "$status" -eq 2 ]
  [[ "$output" == *"--lacks multicast_binding: dgx_a100 has none"* ]]
}

# bats test_tags=long
@test "NVIDIA/nccl#2186: init needs more stack in a large NVLink domain than a thread has" {
  needs 2.28.9 2.32.3
  # Twelve ranks need 0.8 MiB of stack in 2.28.9, as the 40 ranks of the report need 2 MiB.
  for stack in 512K 8M; do
    run answer 2.32.3 2.28.9 gb200_nvl72 3x4 --sizes 1K --collectives AllReduce --stack $stack
    echo "$output"
    [[ "$stack" = 8M && "$output" != *"crashes"* ]] ||
      [[ "$stack" = 512K && "$output" == *"FAILS"*"crashes (Segmentation fault), 0 of 12 ranks joined"*"NVIDIA/nccl#2186"* ]]
  done
}

# bats test_tags=long
@test "meta-pytorch/torchcomms#2252: fused adapters are used beside the ports that they are made of" {
  needs 2.28.9 2.32.3
  run answer 2.32.3 2.28.9 "$(topology dual_port)" 4x2 --sizes 1K --collectives AllReduce
  echo "$output"
  [[ "$output" == *"each adapter once -> fused adapters beside their parts"*"meta-pytorch/torchcomms#2252"* ]]
  # The ports are the same in all cases, whether they are used separately or as parts of a fused adapter.
  [[ "$output" != *"of a node used"* ]]
  run answer 2.32.3 2.28.9 "$(topology dual_port)" 4x2 --sizes 1K --collectives AllReduce --env NCCL_NET_MERGE_LEVEL=LOC
  [[ "$output" != *"beside their parts"* ]]
}
