// SPDX-License-Identifier: Apache-2.0
// How fast and in how much memory a Kineto trace is imported: trace_import_bench [--json] [--keep FILE]
// [MEGABYTES] Makes a trace of that size (default 1000) in the temporary folder, in PyTorch's proportions: of
// each 200 operators with kernel, launch and flow events, one is a collective.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "src/base/clock.h"
#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

constexpr uint64_t kOperatorsPerCollective = 200;

std::string Operator(uint64_t i, bool collective) {
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

// Returns the number of collectives.
uint64_t WriteTrace(const std::string& path, uint64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file << "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, "
          "\"world_size\": 8},\n"
          "  \"traceEvents\": [\n";
  uint64_t collectives = 0;
  for (uint64_t i = 1, written = 0; written < bytes; ++i) {
    const bool collective = i % kOperatorsPerCollective == 0;
    const std::string text = Operator(i, collective);
    file << text;
    written += text.size();
    collectives += collective;
  }
  file << "  {\"ph\": \"i\", \"name\": \"Record Window End\", \"ts\": 1}\n  ]\n}\n";
  return collectives;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int Run(bool json, const std::string& keep, uint64_t megabytes) {
  const std::string path =
      keep.empty()
          ? (std::filesystem::temp_directory_path() / fmt::format("bench_{}.json", getpid())).string()
          : keep;
  const uint64_t collectives = WriteTrace(path, megabytes * 1'000'000);
  const double cpu_before = CpuSeconds();
  const int64_t before = MonotonicNanoseconds();
  const auto imported = ImportFile(path, "kineto");
  const double seconds = static_cast<double>(MonotonicNanoseconds() - before) * 1e-9;
  const double cpu_seconds = CpuSeconds() - cpu_before;
  const double peak = PeakMebibytes();
  const double size = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  if (keep.empty()) std::filesystem::remove(path);
  if (!imported) {
    fmt::print(stderr, "{}", Describe(imported.error()));
    return 3;
  }
  const size_t calls = CallsOf(imported->trace->sections[0]).calls.size();
  const char* const form =
      json ? "{{\"schema\":1,\"megabytes\":{:.0f},\"calls\":{},\"seconds\":{:.2f},\"cpu_seconds\":{:.2f},"
             "\"megabytes_per_second\":{:.0f},\"megabytes_per_cpu_second\":{:.0f},\"peak_rss_mib\":{:.0f}}}\n"
           : "{:.0f} MB, {} calls: {:.2f} s, {:.2f} s of them computing; {:.0f} MB/s, {:.0f} MB/s of "
             "computing; "
             "at most {:.0f} MiB of memory\n";
  fmt::print(fmt::runtime(form), size, calls, seconds, cpu_seconds, size / seconds, size / cpu_seconds, peak);
  if (calls == collectives) return 0;
  fmt::print(stderr, "{} calls were imported, {} are in the file\n", calls, collectives);
  return 1;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  CLI::App app{"How fast and in how much memory a Kineto trace is imported"};
  bool json = false;
  std::string keep;
  uint64_t megabytes = 1000;
  app.add_flag("--json", json, "one JSON object instead of a sentence");
  app.add_option("--keep", keep, "write the trace to this file and leave it there");
  app.add_option("megabytes", megabytes, "size of the trace")->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  return dynamiccl::Run(json, keep, megabytes);
}
