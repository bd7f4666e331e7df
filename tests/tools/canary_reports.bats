#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests of `dynamiccl canary` on real releases. They reproduce public reports with the command a user would type. They
# need the same variables as canary.bash.

load canary/canary

@test "NVIDIA/nccl#1946: one adapter of eight, with the variable that ends it" {
  needs 2.24.3 2.28.9
  run canary 2.24.3 2.28.9 --machine hgx_a100 --world 2x8 --sizes 1M --connect first-call
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"NCCL 2.24.3 -> 2.28.9: WORSE"* ]]
  [[ "$output" == *"8 of a node used -> 1 of a node used"* ]]
  [[ "$output" == *"gave up, simple order"* ]]
  [[ "$output" == *"NCCL_PXN_DISABLE=1 ends it"* ]]
  [[ "$output" == *"NVIDIA/nccl#1946"* ]]
}

@test "NVIDIA/nccl#1748: init fails, from which release to which" {
  needs 2.24.3 2.25.1 2.26.5 2.27.3
  mesh="$DYNAMICCL_SOURCE/tests/tools/canary/four_a100_mesh.xml"
  run canary 2.24.3 2.25.1 2.26.5 2.27.3 --machine "$mesh" --world 2x4 --sizes 1M --connect init --no-remedies --json
  [ "$status" -eq 1 ]
  run python3 -c 'import json,sys; print(*(one["verdict"] for one in json.loads(sys.argv[1])["judged"]))' "$output"
  [ "$output" = "fails fails worse" ]
}

@test "NVIDIA/nccl#2385: unlike numbers of ranks hang in one release, with the stacks" {
  needs 2.30.7 2.31.2 2.32.3
  run canary 2.30.7 2.31.2 2.32.3 --machine dgx_h100 --ranks 7,8 --sizes 1M --connect init --no-remedies --limit 15
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"NCCL 2.30.7 -> 2.31.2: FAILS"* ]]
  [[ "$output" == *"hangs, 0 of 15 ranks joined"* ]]
  [[ "$output" == *"NCCL 2.30.7 -> 2.32.3: SAME"* ]]
  command -v gdb || skip "no gdb: a hung run's stacks are not shown"
  [[ "$output" == *"ncclNvlsTreeConnect"* ]]
}

@test "NVIDIA/nccl#2385: equal numbers of ranks come up" {
  needs 2.30.7 2.31.2
  for ranks in 7,7 8,8; do
    run canary 2.30.7 2.31.2 --machine dgx_h100 --ranks $ranks --sizes 1M --connect init --no-remedies
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"NCCL 2.30.7 -> 2.31.2: SAME"* ]]
  done
}

@test "NVIDIA/nccl#1946: the report's own machine, two A800" {
  needs 2.24.3 2.28.9
  run canary 2.24.3 2.28.9 --machine two_a800 --world 2x2 --sizes 1M --connect first-call
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"2 of a node used -> 1 of a node used"*"NCCL_PXN_DISABLE=1 ends it"*"NVIDIA/nccl#1946"* ]]
}

@test "NVIDIA/nccl#1829: GPUs at an AMD processor go from peer-to-peer to host memory" {
  needs 2.22.3 2.24.3
  run answer 2.22.3 2.24.3 "$(topology lambda_4xa6000)" 1x4 --sizes 1M
  echo "$output"
  [[ "$output" == *"WORSE"*"P2P -> SHM"*"NVIDIA/nccl#1829"* ]]
  run answer 2.22.3 2.24.3 "$(topology lambda_4xa6000)" 1x4 --sizes 1M --env NCCL_P2P_LEVEL=SYS
  [[ "$output" != *"P2P -> SHM"* ]]
}

@test "NVIDIA/nccl-tests#233: an adapter without a NUMA node" {
  needs 2.24.3 2.22.3
  run answer 2.24.3 2.22.3 "$(topology l20_numa_minus1)" 2x4 --sizes 1M
  echo "$output"
  [[ "$output" == *"FAILS"*"crashes"*"0 of 8 ranks joined"*"NVIDIA/nccl-tests#233"* ]]
}

@test "pytorch/pytorch#163063 and vllm-project/vllm#58179: what NCCL_ALGO no longer allows" {
  needs 2.22.3 2.24.3 2.28.9 2.32.3
  run answer 2.22.3 2.24.3 dgx_a100 1x8 --sizes 1M --env NCCL_ALGO=Tree
  echo "$output"
  [[ "$output" == *"FAILS"*"no algorithm/protocol available"*"pytorch/pytorch#163063"* ]]
  run answer 2.28.9 2.32.3 dgx_h100 1x8 --sizes 1M --env NCCL_ALGO=allreduce:tree --env NCCL_PROTO=Simple
  echo "$output"
  [[ "$output" == *"FAILS"*"No algorithm/protocol nor symKernelId"*"vllm-project/vllm#58179"* ]]
}

@test "notes of 2.28.3: half the channels on Blackwell" {
  needs 2.27.7 2.28.9
  run answer 2.27.7 2.28.9 dgx_b200 2x8 --sizes 1M
  echo "$output"
  [[ "$output" == *"CHANGED"*"32 collective"*"16 collective"*"notes of 2.28.3"* ]]
}

@test "NVIDIA/nccl#1136: ranks at Intel and AMD processors launch unlike kernels" {
  needs 2.22.3 2.21.5
  run mixed 2.22.3 2.21.5 --machine "$(machine a800_intel)" --machine "$(machine a800_amd)" --world 2x8 --sizes 1K,1M
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAILS"*"launch unlike kernels"*"NVIDIA/nccl#1136"* ]]
  # If all processors are of one vendor, all ranks choose alike.
  run mixed 2.22.3 2.21.5 --machine "$(machine a800_intel)" --world 2x8 --sizes 1K,1M
  [ "$status" -eq 0 ]
}

@test "NVIDIA/nccl#1184: ranks of A100 and H100 launch unlike kernels" {
  needs 2.21.5 2.18.3
  run mixed 2.21.5 2.18.3 --machine "$(machine h100_one)" --machine "$(machine a100_one)" --world 2x2 --sizes 1K,1M
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAILS"*"launch unlike kernels"*"NVIDIA/nccl#1184"* ]]
}

@test "notes of 2.26.2: ranks of DGX A100 and DGX H100 launch unlike kernels" {
  needs 2.28.9 2.24.3
  run mixed 2.28.9 2.24.3 --machine dgx_h100 --machine dgx_a100 --world 2x8 --sizes 1K,64K,1M,16M
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAILS"*"launch unlike kernels"*"notes of 2.26.2"* ]]
}

@test "notes of 2.21.5: nodes whose rings cross adapters and nodes whose rings do not hang in init" {
  needs 2.19.3 2.20.5
  nodes=(--machine dgx_h100 --machine "$(machine h100_few_nvlinks)" --world 2x4 --gpus 0,2,4,6 --sizes 1M)
  run mixed 2.19.3 2.20.5 "${nodes[@]}" --limit 15
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"NCCL 2.19.3 -> 2.20.5: FAILS"*"hangs, 0 of 8 ranks joined"*"notes of 2.21.5"* ]]
  run mixed 2.19.3 2.20.5 "${nodes[@]}" --limit 15 --env NCCL_CROSS_NIC=0
  [ "$status" -eq 0 ]
}

@test "notes of 2.27.3: NCCL_P2P_DISABLE in an NVLink domain" {
  needs 2.28.9 2.22.3
  run answer 2.28.9 2.22.3 gb200_nvl72 2x4 --sizes 1M --env NCCL_P2P_DISABLE=1
  echo "$output"
  [[ "$output" == *"FAILS"*"crashes"*"0 of 8 ranks joined"*"notes of 2.27.3"* ]]
  run answer 2.28.9 2.22.3 gb200_nvl72 2x4 --sizes 1M --env NCCL_P2P_DISABLE=1 --env NCCL_MNNVL_ENABLE=0
  [[ "$output" != *"crashes"* ]]
}

@test "ROCm/rocm-systems#6453 and meta-pytorch/torchcomms#1433: point-to-point channels a peer" {
  needs 2.28.9 2.32.3
  run answer 2.28.9 2.32.3 dgx_h100 2x8 --sizes 1M
  echo "$output"
  [[ "$output" == *"CHANGED"*"2 per peer -> "*"4 per peer"*"ROCm/rocm-systems#6453"* ]]
  run answer 2.28.9 2.32.3 dgx_h100 2x8 --sizes 1M --env NCCL_P2P_PER_CHANNEL_NET_BW=-1
  echo "$output"
  [[ "$output" == *"CHANGED"*"2 per peer -> "*"1 per peer"*"meta-pytorch/torchcomms#1433"* ]]
}

@test "NVIDIA/nccl#2077: where no memory can be bound to a multicast object" {
  needs 2.28.9 2.32.3
  run canary 2.28.9 2.32.3 --machine dgx_h100 --world 1x8 --sizes 1M --connect first-call --lacks multicast_binding
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAILS"*"Failed to bind NVLink SHARP"*"NCCL_NVLS_ENABLE=0 ends it"*"NVIDIA/nccl#2077"* ]]
}

@test "NVIDIA/nccl#1925: an NVLink domain without an IMEX channel" {
  needs 2.26.5 2.28.9
  run answer 2.26.5 2.28.9 gb200_nvl72 2x2 --sizes 1M --lacks fabric_handles
  echo "$output"
  [[ "$output" == *"FAILS"*"Check the IMEX channel"*"NVIDIA/nccl#1925"* ]]
  run answer 2.26.5 2.28.9 gb200_nvl72 2x2 --sizes 1M --lacks fabric_handles --env NCCL_MNNVL_ENABLE=0
  [[ "$output" != *"FAILS"* ]]
}

@test "NVIDIA/nccl#2033: the calling thread does not get its CPUs back" {
  needs 2.28.9 2.29.7
  [ "$(nproc)" -gt 1 ] || skip "one CPU: a thread cannot be left on others"
  run answer 2.28.9 2.29.7 dgx_a100 1x2 --sizes 1M
  echo "$output"
  [[ "$output" == *"CHANGED"*"threads stay on the CPUs of their GPU"*"NVIDIA/nccl#2033"* ]]
}

@test "NVIDIA/nccl#1304: NCCL_PROTO is not kept where NCCL_ALGO names no algorithm of a collective" {
  needs 2.22.3 2.21.5
  tree=(--sizes 1K --collectives AllReduce,Broadcast --env NCCL_ALGO=Tree)
  run answer 2.22.3 2.21.5 dgx_a100 1x2 "${tree[@]}" --env NCCL_PROTO=Simple
  echo "$output"
  [[ "$output" == *"Broadcast: Ring/Simple/1 -> Ring/LL/1"*"NVIDIA/nccl#1304"* ]]
  run answer 2.22.3 2.21.5 dgx_a100 1x2 "${tree[@]}"
  [[ "$output" != *"NVIDIA/nccl#1304"* ]]
}

@test "NVIDIA/nccl#2053: LL128 between nodes of GH200" {
  needs 2.26.5 2.28.9
  run answer 2.26.5 2.28.9 "$(topology gh200x4)" 2x4 --sizes 1M --collectives AllReduce
  echo "$output"
  [[ "$output" == *"Ring/LL/8 -> Ring/LL128/8"*"NVIDIA/nccl#2053"* ]]
  run answer 2.26.5 2.28.9 "$(topology gh200x4)" 2x4 --sizes 1M --collectives AllReduce --env NCCL_LL128_C2C=0
  [[ "$output" != *"LL128/"* ]]
}

@test "ROCm/rocm-systems#7663: an adapter that is not the GPU's own counts as near over C2C" {
  needs 2.28.9 2.32.3
  run answer 2.32.3 2.28.9 "$(topology c2c_fast_slow)" 2x2 --sizes 1M
  echo "$output"
  [[ "$output" == *"1 of a node used -> 2 of a node used"* ]]
}

@test "NVIDIA/nccl#2428: nodes with unlike numbers of adapters" {
  needs 2.28.9 2.32.3
  sed 's/^adapters_at.*/adapters_at = 0 4/' "$DYNAMICCL_SOURCE/tests/real_nccl/machines/dgx_h100.machine" >two.machine
  sed 's/^adapters_at.*/adapters_at = 0/' two.machine >one.machine
  nodes=(--machine ./two.machine --machine ./one.machine --world 2x8 --sizes 1M --collectives AllReduce)
  run mixed 2.28.9 2.32.3 "${nodes[@]}" --env NCCL_IGNORE_NET_MISMATCH=0
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAILS"*"init fails"*"Detected mixed local Net device counts"*"NVIDIA/nccl#2428"* ]]
  run mixed 2.28.9 2.32.3 "${nodes[@]}"
  [ "$status" -eq 0 ]
}

@test "NVIDIA/nccl#2257: NVLS where ranks share a GPU and the last two do not" {
  needs 2.30.7 2.32.3
  run answer 2.32.3 2.30.7 dgx_h100 1x3 --gpus 0,0,1 --env NCCL_MULTI_RANK_GPU_ENABLE=1 --sizes 1M
  echo "$output"
  [[ "$output" == *"0 NVLS, "*" -> "*"16 NVLS, "*"NVIDIA/nccl#2257"* ]]
  run answer 2.32.3 2.30.7 dgx_h100 1x4 --gpus 0,0,1,1 --env NCCL_MULTI_RANK_GPU_ENABLE=1 --sizes 1M
  [[ "$output" != *"NVIDIA/nccl#2257"* ]]
}

@test "NVIDIA/nccl#2192: fused adapters of a PCI switch beside their parts" {
  needs 2.28.9 2.32.3
  run answer 2.32.3 2.28.9 dgx_a100 2x8 --env NCCL_NET_MERGE_LEVEL=PIX --sizes 1M
  echo "$output"
  [[ "$output" == *"each adapter once -> fused adapters beside their parts"*"meta-pytorch/torchcomms#2252"* ]]
}

@test "a node of B200 and one of H100: unlike numbers of NVLS channels" {
  needs 2.24.3 2.28.9
  nodes=(--machine dgx_b200 --machine dgx_h100 --world 2x8 --sizes 1M --collectives AllReduce)
  run mixed 2.24.3 2.28.9 "${nodes[@]}"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAILS"*"a collective fails"*"Message truncated"* ]]
  run mixed 2.24.3 2.28.9 "${nodes[@]}" --env NCCL_NVLS_ENABLE=0
  [ "$status" -eq 0 ]
}

@test "a node without adapters runs in every release" {
  needs 2.22.3 2.28.9
  run answer 2.22.3 2.28.9 "$(topology g5)" 1x8 --sizes 1M
  echo "$output"
  [[ "$output" != *"crashes"* && "$output" != *"FAILS"* ]]
}
