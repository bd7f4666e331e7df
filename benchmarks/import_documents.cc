// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/import_documents.h"

#include <fmt/format.h>

namespace dynamiccl {
namespace {

constexpr uint64_t kOperatorsPerCollective = 200;
constexpr uint64_t kRanks = 8;
constexpr uint64_t kSizes = 21;  // number of sizes in a run of nccl-tests
constexpr uint64_t kIterations = 20;

// The events of the i-th operator, in PyTorch's layout.
std::string KinetoOperator(uint64_t i, bool collective) {
  const double at = 1711964646000000.25 + static_cast<double>(i) * 20;
  std::string text;
  if (collective) {
    text += fmt::format(
        R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 4711, "tid": 4711,
    "ts": {:.3f}, "dur": 15.250,
    "args": {{
      "External id": {}, "Record function id": 0, "Collective name": "allreduce", "In msg nelems": {}, "Out msg nelems": {}, "Group size": 8, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "Ev Idx": {}
    }}
  }},
)",
        at, i, 1024 + i, 1024 + i, i);
  } else {
    text += fmt::format(
        R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 4711, "tid": 4711,
    "ts": {:.3f}, "dur": 15.250,
    "args": {{
      "External id": {}, "Record function id": 0, "Sequence number": {}, "Fwd thread id": 0, "Input Dims": [[4096], [8192, 4096], [4096, 4096], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], "Concrete Inputs": ["", "", "", "1", "1"], "Ev Idx": {}
    }}
  }},
)",
        at, i, i, i);
  }
  text += fmt::format(
      R"(  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,
    "ts": {:.3f}, "dur": 4.125,
    "args": {{
      "External id": {}, "cbid": 211, "correlation": {}
    }}
  }},
  {{
    "ph": "s", "id": {}, "pid": 4711, "tid": 4711, "ts": {:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7,
    "ts": {:.3f}, "dur": 13.500,
    "args": {{
      "External id": {}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {}, "registers per thread": 168, "shared memory": 98304, "blocks per SM": 2.962963, "warps per SM": 23.703703, "grid": [24, 1, 1], "block": [544, 1, 1], "est. achieved occupancy %": 25
    }}
  }},
  {{
    "ph": "f", "id": {}, "pid": 0, "tid": 7, "ts": {:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
)",
      at + 5, i, i, i, at + 5,
      collective
          ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
          : "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>",
      at + 30, i, i, i, at + 30);
  return text;
}

std::string KinetoPiece(uint64_t i) {
  std::string text;
  for (uint64_t k = (i - 1) * kOperatorsPerCollective + 1; k <= i * kOperatorsPerCollective; ++k)
    text += KinetoOperator(k, k % kOperatorsPerCollective == 0);
  return text;
}

// Returns a size from 1 KiB to 1 GiB. Neighbouring pieces have different sizes.
uint64_t BytesOf(uint64_t i) {
  return (uint64_t{1} << (10 + i % kSizes)) + 64 * (i % 7);
}
// Returns a time in microseconds for a bandwidth of 100 GB/s and a latency.
double MicrosecondsOf(uint64_t i) {
  return 20.25 + static_cast<double>(BytesOf(i)) / 100e3 + static_cast<double>(i % 13) / 8;
}
double BandwidthOf(uint64_t i) {
  return static_cast<double>(BytesOf(i)) / (MicrosecondsOf(i) * 1e3);
}

// Returns a run of nccl-tests, from its command line to its summary.
std::string NcclTestsRun(uint64_t i) {
  std::string text = fmt::format(
      "srun -N 1 -n 8 ./build/all_reduce_perf -b 1K -e 1G -f 2 -n {}\n"
      "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg "
      "iters: 1 validation: 1 graph: 0\n#\n# Using devices\n",
      20 + i % 5);
  for (uint64_t rank = 0; rank < kRanks; ++rank)
    text +=
        fmt::format("#  Rank  {} Group  0 Pid {:>7} on  node-1 device  {} [0x{:02x}] NVIDIA H100 80GB HBM3\n",
                    rank, 418310 + rank, rank, 27 + rank);
  text +=
      "#\n#                                                              out-of-place                       "
      "in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw "
      "  "
      "busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s) "
      " "
      "(GB/s)       \n";
  for (uint64_t k = 0; k < kSizes; ++k) {
    const double gb_s = BandwidthOf(i + k);
    text += fmt::format("{:>12} {:>13}     float     sum      -1 ", BytesOf(i + k), BytesOf(i + k) / 4);
    for (int half = 0; half < 2; ++half)
      text += fmt::format("{:>8.2f} {:>7.2f} {:>7.2f}      0 ", MicrosecondsOf(i + k), gb_s, gb_s * 1.75);
    text += '\n';
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 97.4432 \n#\n\n";
}

std::string NcclTestsResult(uint64_t i) {
  const auto half = [&](const char* key, double us) {
    std::string each;
    for (uint64_t k = 0; k < kIterations; ++k)
      each += fmt::format("{}{:.3f}", k == 0 ? "" : ", ", us + static_cast<double>(k) / 8);
    return fmt::format(
        R"("{}": {{"time": {:.3f}, "alg_bw": {:.6f}, "bus_bw": {:.6f}, "nwrong": 0}}, "{}_per_iter": {{"times_us": [{}], "mean_us": {:.3f}}})",
        key, us, BandwidthOf(i), BandwidthOf(i) * 1.75, key, each, us);
  };
  return fmt::format(
      R"({}{{"size": {}, "count": {}, "type": "float", "redop": "sum", "root": "-1", {}, {}}})",
      i == 1 ? "" : ",\n    ", BytesOf(i), BytesOf(i) / 4, half("out_of_place", MicrosecondsOf(i)),
      half("in_place", MicrosecondsOf(i) + 0.5));
}

std::string NcclTestsRow(uint64_t i) {
  return fmt::format(
      "public,perlmutter,run_{}/all_reduce.out,env5,2.28,all_reduce,2,8,NVIDIA H100 80GB "
      "HBM3,{},{},float,sum,-1,{:.1f},{:.2f},{:.2f},{:.1f},{:.2f},{:.2f},5,20\n",
      i / kSizes % 50, BytesOf(i), BytesOf(i) / 4, MicrosecondsOf(i), BandwidthOf(i), BandwidthOf(i) * 1.75,
      MicrosecondsOf(i) + 0.5, BandwidthOf(i), BandwidthOf(i) * 1.75);
}

std::string ConfigRow(uint64_t i) {
  constexpr const char* kConfigs[] = {"Ring,LL", "Ring,LL128", "Ring,Simple",
                                      "Tree,LL", "Tree,LL128", "Tree,Simple"};
  return fmt::format("h100,AllReduce,16,2,{},{},{},{:.3f}\n", BytesOf(i), kConfigs[i % 6], 2 << i % 5,
                     MicrosecondsOf(i));
}

std::string FlightRecorderEntry(uint64_t i) {
  return fmt::format(
      R"({}{{"collective_seq_id":{},"duration_ms":{:.6f},"input_dtypes":["BFloat16"],"input_sizes":[[{},128]],"is_p2p":false,"op_id":{},"output_dtypes":["BFloat16"],"output_sizes":[[{},128]],"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"nccl:all_reduce","record_id":{},"retired":true,"state":"completed","thread_id":"139872345","thread_name":"pt_main_thread","time_created_ns":{},"time_discovered_completed_ns":{},"time_discovered_started_ns":{},"timeout_ms":600000}})",
      i == 1 ? "" : ",\n", i, MicrosecondsOf(i) * 1e-3, BytesOf(i) / 256, i, BytesOf(i) / 256, i,
      1724779239936775119 + i * 250000, 1724779239946775119 + i * 250000, 1724779239941775119 + i * 250000);
}

// Returns an operator and, in every fourth piece, a collective, as the observer writes them.
std::string ExecutionNode(uint64_t i) {
  const bool collective = i % 4 == 0;
  const char* const attributes =
      R"({"name": "fw_parent", "type": "uint64", "value": 0},{"name": "seq_id", "type": "int64", "value": -1},{"name": "scope", "type": "uint64", "value": 0},{"name": "tid", "type": "uint64", "value": 1},{"name": "fw_tid", "type": "uint64", "value": 0},{"name": "op_schema", "type": "string", "value": ""})";
  if (!collective) {
    return fmt::format(
        R"j({}    {{
      "id": {}, "name": "aten::addmm", "ctrl_deps": {},
      "inputs": {{"values": [[8,9,0,{},4,"cuda:0"],[11,12,0,{},4,"cuda:0"],1,1], "shapes": [[{}],[64,{}],[],[]], "types": ["Tensor(float)","Tensor(float)","Int","Int"]}},
      "outputs": {{"values": [[13,14,0,64,4,"cuda:0"]], "shapes": [[64]], "types": ["Tensor(float)"]}},
      "attrs": [{{"name": "rf_id", "type": "uint64", "value": {}}},{}]
    }})j",
        i == 1 ? "" : ",\n", i + 10, i + 9, i, i * 64, i, i, i, attributes);
  }
  return fmt::format(
      R"j(,
    {{
      "id": {}, "name": "record_param_comms", "ctrl_deps": {},
      "inputs": {{"values": [[[9,8,0,{},4,"cuda:1"]],{},["0","default_pg"],1,"allreduce",[],[],0,1,8], "shapes": [[[{}]],[],[[],[]],[],[],[],[],[],[],[]], "types": ["GenericList[Tensor(float)]","Int","Tuple[String,String]","Int","String","GenericList[]","GenericList[]","Int","Int","Int"]}},
      "outputs": {{"values": [[[9,8,0,{},4,"cuda:1"]]], "shapes": [[[{}]]], "types": ["GenericList[Tensor(float)]"]}},
      "attrs": [{{"name": "rf_id", "type": "uint64", "value": {}}},{},{{"name": "collective_name", "type": "string", "value": "allreduce"}},{{"name": "dtype", "type": "string", "value": "Float"}},{{"name": "in_msg_nelems", "type": "uint64", "value": {}}},{{"name": "out_msg_nelems", "type": "uint64", "value": {}}},{{"name": "pg_name", "type": "string", "value": "0"}},{{"name": "pg_desc", "type": "string", "value": "default_pg"}},{{"name": "pg_size", "type": "uint64", "value": 8}}]
    }})j",
      i + 10, i + 9, BytesOf(i), i, BytesOf(i), BytesOf(i), BytesOf(i), i, attributes, BytesOf(i),
      BytesOf(i));
}

std::string InspectorLine(uint64_t i) {
  return fmt::format(
      R"({{"header":{{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1}},"metadata":{{"inspector_output_format_version":"v4.0","git_rev":"9019a1912-dirty","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":{},"hostname":"node-1","pid":1639453}},"coll_perf":{{"coll":"AllReduce","coll_sn":{},"coll_msg_size_bytes":{},"coll_exec_time_us":{:.3f},"coll_timing_source":"kernel_gpu","coll_algobw_gbs":{:.6f},"coll_busbw_gbs":{:.6f}}}}}
)",
      1748030377748202 + i * 1000, i, BytesOf(i), MicrosecondsOf(i), BandwidthOf(i), BandwidthOf(i) * 1.75);
}

// Returns the events of a call with two channels and a step of its proxy, as the example plugin writes them.
std::string ProfilerEvents(uint64_t i) {
  std::string text;
  const auto event = [&](const char* name, const char* category, char phase, uint64_t at,
                         const std::string& arguments) {
    text += fmt::format(
        R"({{"name": "{}", "cat": "{}", "ph": "{}", "id": {}, "pid": 77, "tid": 1, "ts": {}.125000{}{}{}}},)"
        "\n",
        name, category, phase, i, 1000 * i + at, arguments.empty() ? "" : ", \"args\": {", arguments,
        arguments.empty() ? "" : "}");
  };
  event("AllReduce", "COLL_API", 'b', 10,
        fmt::format(
            R"("count": {}, "datatype": "ncclFloat32", "root": 0, "GraphCaptured": 0, "Stream": "0x55")",
            BytesOf(i) / 4));
  event(
      "AllReduce", "COLL", 'b', 40,
      fmt::format(
          R"("SeqNum": {}, "CommHash": 12464174370433239723, "Rank": 3, "Count": {}, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 2)",
          i, BytesOf(i) / 4));
  for (int channel = 0; channel < 2; ++channel) {
    event("KernelCh", "GPU", 'b', 100,
          fmt::format(R"("Channel": {}, "StartGpuClk": {}, "StopGpuClk": {})", channel, 5000000 * i,
                      5000000 * i + 90000));
    event("ScheduleSend", "PROXY", 'b', 101,
          R"("Channel": 0, "Peer": 4, "Steps": 4, "ChunkSize": 65536, "transSize": 262144)");
    event("ScheduleSend", "PROXY", 'e', 102, "");
    event("KernelCh", "GPU", 'e', 200, "");
  }
  event("AllReduce", "COLL", 'e', 220, "");
  event("AllReduce", "COLL_API", 'e', 230, "");
  return text;
}

// Returns the same events as the variant with one object per line writes them.
std::string ProfilerLines(uint64_t i) {
  std::string text;
  const auto event = [&](const char* type, uint64_t address, uint64_t parent, uint64_t at,
                         const std::string& details) {
    text += fmt::format(
        R"({{"recordType":"event","type":"{}","gpuUuid":"02ffffffb8ffffffab4b-ffffffee2f-17ff","commId":8612235153520363772,"rank":2,"eventAddr":"0x{:x}","parentObj":"0x{:x}","start":{{"ts":{}.293,"pid":503639,"tid":503662}},"stop":{{"ts":{}.793,"pid":503639,"tid":503662}},"duration":0.5,"details":{{{}}}}})"
        "\n",
        type, address, parent, 1000 * i + at, 1000 * i + at + 50, details);
  };
  const uint64_t call = 0x7f6feec00000 + i % 64 * 256;
  event("ncclProfileGroup", call + 128, 0, 5, R"("groupDepth":1)");
  event(
      "ncclProfileColl", call, call + 128, 10,
      fmt::format(
          R"("func":"AllReduce","seq":{},"count":{},"dtype":"ncclFloat32","root":0,"channels":2,"algo":"RING","proto":"SIMPLE","parentGroup":"0x{:x}")",
          i, BytesOf(i) / 4, call + 128));
  event("ncclProfileKernelCh", call + 16, call, 20, R"("channel":0)");
  event("ncclProfileKernelCh", call + 32, call, 21, R"("channel":1)");
  event("ncclProfileProxyOp", call + 48, call, 22,
        R"("channel":0,"peer":4,"steps":4,"chunkSize":65536,"isSend":1)");
  return text;
}

std::string AicbRow(uint64_t i) {
  return fmt::format(
      "CommType.{},CommGroup.dp_group,8,{},forward.MegatronModel,None,{},,{},{:.3f},{:.3f},1\n",
      i % 9 == 0 ? "broadcast" : "all_reduce", BytesOf(i), i % 9 == 0 ? "0" : "None",
      MicrosecondsOf(i) * 1e-3, BandwidthOf(i), BandwidthOf(i) * 1.75);
}

std::string SimAiLayer(uint64_t i) {
  return fmt::format("layer_{}\t-1\t{}\tALLGATHER\t{}\t{}\tREDUCESCATTER\t{}\t{}\tALLREDUCE\t{}\t100\n", i,
                     600000 + i % 1000, BytesOf(i), 300000 + i % 1000, BytesOf(i), 300000 + i % 999,
                     BytesOf(i));
}

void AppendVarint(std::string& text, uint64_t value) {
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  text += static_cast<char>(value);
}
void AppendText(std::string& text, uint64_t field, std::string_view content) {
  AppendVarint(text, field << 3 | 2);
  AppendVarint(text, content.size());
  text += content;
}
void AppendNumber(std::string& text, uint64_t field, uint64_t value) {
  AppendVarint(text, field << 3);
  AppendVarint(text, value);
}

// Returns a node with its length before it. Every second node is an AllReduce, the others are computation.
std::string ChakraNode(uint64_t i) {
  std::string node;
  const auto attribute = [&](std::string_view name, uint64_t field, uint64_t value) {
    std::string text;
    AppendText(text, 1, name);
    AppendNumber(text, field, value);
    AppendText(node, 10, text);
  };
  const bool collective = i % 2 == 0;
  AppendNumber(node, 1, i);
  AppendText(node, 2, collective ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" : "aten::addmm");
  AppendNumber(node, 3, collective ? 7 : 4);
  AppendNumber(node, 5, i - 1);
  AppendNumber(node, 6, 1000 * i);
  AppendNumber(node, 7, 500);
  attribute("rf_id", 13, i);
  attribute("is_cpu_op", 31, 0);
  if (collective) attribute("comm_type", 13, 0);
  if (collective) attribute("comm_size", 13, BytesOf(i));
  if (collective) attribute("pg_size", 13, kRanks);
  attribute("num_ops", 13, 1000000 + i);
  attribute("tensor_size", 13, 64 * i);
  std::string text;
  AppendVarint(text, node.size());
  return text + node;
}

std::string DeepSpeedLine(uint64_t i) {
  return fmt::format(
      "[2026-01-01 10:00:{:02},{:03}] [INFO] [logging.py:96:log_dist] [Rank 0] comm op: all_reduce | time "
      "(ms): {:.2f} "
      "| msg size: {:.2f} MB | algbw (Gbps): {:.2f} | busbw (Gbps): {:.2f} \n",
      i % 60, i % 1000, MicrosecondsOf(i) * 1e-3, static_cast<double>(1 + i % 1000), 160.0, 140.0);
}

// Returns the lines of a call of eight ranks, with rank 0's choice and a line of another subsystem.
std::string DebugCalls(uint64_t i) {
  std::string text;
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    text += fmt::format(
        "node-1:{}:{} [{}] NCCL INFO AllReduce: opCount {:x} sendbuff 0x7f13c8000{:03x} recvbuff "
        "0x7f13d8000{:03x} "
        "count {} datatype 7 op 0 root 0 comm 0x7f1404a14{:03x} [nranks=8] stream 0x55d1b9f3e{:03x}\n",
        17028 + rank, 17128 + rank, rank, i, i % 4096, i % 4096, BytesOf(i) / 4, rank * 16, rank * 16);
  }
  text += fmt::format(
      "node-1:17028:17128 [0] NCCL INFO AllReduce: {} Bytes -> Algo RING proto SIMPLE "
      "channel{{Lo..Hi}}={{0..23}}\n"
      "node-1:17028:17129 [0] NCCL INFO proxyProgressAsync opId=0x{:x} op.type=3 op.reqBuff=0x7c703000e4e0 "
      "op.respSize=88 done\n",
      BytesOf(i), 0x7c7060401c40 + i);
  return text;
}

std::string DebugPiece(uint64_t i) {
  std::string text;
  for (uint64_t rank = 0; i == 1 && rank < kRanks; ++rank) {
    text += fmt::format(
        "node-1:{}:{} [{}] NCCL INFO ncclCommInitRankConfig comm 0x7f1404a14{:03x} rank {} nranks 8 cudaDev "
        "{} nvmlDev {} "
        "busId 18000 commId 0xec5106611b159969 - Init START\n",
        17028 + rank, 17128 + rank, rank, rank * 16, rank, rank, rank);
  }
  return text + DebugCalls(i);
}

std::string NoHead(uint64_t /*pieces*/) {
  return "";
}

std::string SimAiHead(uint64_t pieces) {
  return fmt::format(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 16 "
      "checkpoints: 0 checkpoint_initiates: 0\n{}\n",
      pieces);
}

constexpr ImportDocument kDocuments[] = {
    {"kineto",
     [](uint64_t) -> std::string {
       return "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, "
              "\"world_size\": 8},\n  \"traceEvents\": [\n";
     },
     KinetoPiece, "  {\"ph\": \"i\", \"name\": \"Record Window End\", \"ts\": 1}\n  ]\n}\n"},
    {"nccl-tests", NoHead, NcclTestsRun, "", 2 * kSizes},
    {"nccl-tests-json",
     [](uint64_t) -> std::string {
       return R"({"version": "2.17.6", "args": ["./build/all_reduce_perf", "-b", "1K"], "env": ["NCCL_DEBUG=WARN"],
  "nccl_version": 22809, "config": {"devices": [{"rank": 0, "hostname": "node-1", "device_info": "NVIDIA H100"},
  {"rank": 1, "hostname": "node-1", "device_info": "NVIDIA H100"}]}, "results": [
    )";
     },
     NcclTestsResult, "\n  ]}\n", 2 * kIterations},
    {"nccl-tests-table",
     [](uint64_t) -> std::string {
       return "source,system,file,config,nccl,coll,nodes,ranks,device,bytes,count,dtype,redop,root,oop_us,"
              "oop_algbw,oop_busbw,ip_us,ip_algbw,ip_busbw,warmup,iters\n";
     },
     NcclTestsRow, "", 2},
    {"config-table",
     [](uint64_t) -> std::string {
       return "topology,collective,ranks,nodes,bytes,algorithm,protocol,channels,us\n";
     },
     ConfigRow, ""},
    {"flight-recorder",
     [](uint64_t) -> std::string {
       return R"({"version":"2.10","comm_lib_version":"2.27.5","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3, 4, 5, 6, 7]"}},"entries":[
)";
     },
     FlightRecorderEntry, "\n]}\n"},
    {"pytorch-et",
     [](uint64_t) -> std::string {
       return "{\n  \"schema\": \"1.1.0-chakra.0.0.4\", \"pid\": 4321, \"time\": \"2024-01-01 00:00:00\", "
              "\"start_ts\": 1000,\n  \"nodes\": [\n";
     },
     ExecutionNode, "\n  ],\n  \"finish_ts\": 2000\n}\n", 0.25},
    {"inspector", NoHead, InspectorLine, ""},
    {"nccl-profiler", [](uint64_t) -> std::string { return "[\n"; }, ProfilerEvents, "{}]\n"},
    {"nccl-profiler-lines",
     [](uint64_t) -> std::string {
       return R"({"type":"ProfilerLifecycle","func":"ProfilerInit","commId":8612235153520363772,"rank":2,"details":{"nranks":4}}
)";
     },
     ProfilerLines, ""},
    {"aicb",
     [](uint64_t) -> std::string {
       return "[rank0 ~ rank7]\ncomm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,"
              "_elapsed_time,algbw,busbw,count\n";
     },
     AicbRow, ""},
    {"simai", SimAiHead, SimAiLayer, "", 3},
    {"chakra",
     [](uint64_t) -> std::string {
       return "\x07\x0a\x05"
              "0.0.4";
     },
     ChakraNode, "", 0.5},
    {"deepspeed-comms", NoHead, DeepSpeedLine, ""},
    {"nccl-debug", NoHead, DebugPiece, "", kRanks},
};

}  // namespace

std::span<const ImportDocument> AllImportDocuments() {
  return kDocuments;
}

}  // namespace dynamiccl
