// SPDX-License-Identifier: Apache-2.0
// How fast and in how much memory a Kineto trace is imported.
//
//   trace_import_bench [--json] [--gzip] [--rounds N] [--keep FILE] [MEGABYTES]
//
// Writes a trace of that size (default 1000) to the temporary folder, in PyTorch's proportions: one of 200
// operators, each with kernel, launch and flow events, is a collective. In each round the file is read and
// decompressed alone, and then imported.
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "traces/format/trace_calls.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

constexpr uint64_t kOperatorsPerCollective = 200;

// The events of the i-th operator, in PyTorch's layout.
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

// A file that stores text as it is, or gzips it as PyTorch does.
class TextFile {
 public:
  TextFile(const std::string& path, bool gzip) : file_(gzopen(path.c_str(), gzip ? "wb6" : "wbT")) {}
  ~TextFile() { gzclose(file_); }
  void Put(const std::string& text) { gzwrite(file_, text.data(), static_cast<unsigned>(text.size())); }

 private:
  gzFile file_;
};

// Size and content of the written trace.
struct MadeTrace {
  // Bytes of JSON, before compression.
  uint64_t bytes = 0;
  uint64_t collectives = 0;
};

MadeTrace WriteTrace(const std::string& path, bool gzip, uint64_t bytes) {
  TextFile file(path, gzip);
  file.Put(
      "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, "
      "\"world_size\": 8},\n"
      "  \"traceEvents\": [\n");
  MadeTrace made;
  for (uint64_t i = 1; made.bytes < bytes; ++i) {
    const bool collective = i % kOperatorsPerCollective == 0;
    const std::string text = Operator(i, collective);
    file.Put(text);
    made.bytes += text.size();
    made.collectives += collective;
  }
  file.Put("  {\"ph\": \"i\", \"name\": \"Record Window End\", \"ts\": 1}\n  ]\n}\n");
  return made;
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

// Wall-clock and processor seconds of each round.
struct Cost {
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
};

// Times one reading, from its construction on.
class Stopwatch {
 public:
  void StopInto(Cost& cost) const {
    cost.seconds.push_back(static_cast<double>(MonotonicNanoseconds() - begin_) * 1e-9);
    cost.cpu_seconds.push_back(CpuSeconds() - cpu_begin_);
  }

 private:
  int64_t begin_ = MonotonicNanoseconds();
  double cpu_begin_ = CpuSeconds();
};

Status ReadAlone(const std::string& path) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  std::vector<char> piece(1 << 20);
  while (stream.stream().read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
  }
  return stream.status();
}

struct Options {
  bool json = false;
  bool gzip = false;
  int rounds = 1;
  std::string keep;
  uint64_t megabytes = 1000;
};

void Print(const Options& options, const MadeTrace& made, const Cost& reading, const Cost& import) {
  const double size = static_cast<double>(made.bytes) * 1e-6;
  const double seconds = Median(import.seconds), cpu = Median(import.cpu_seconds);
  const char* const form =
      options.json
          ? "{{\"schema\":2,\"megabytes\":{:.0f},\"gzip\":{},\"rounds\":{},\"calls\":{},\"seconds\":{:.2f},"
            "\"cpu_seconds\":{:.2f},\"megabytes_per_second\":{:.0f},\"megabytes_per_cpu_second\":{:.0f},"
            "\"reading_megabytes_per_cpu_second\":{:.0f},\"peak_rss_mib\":{:.0f}}}\n"
          : "{:.0f} MB of JSON (gzip: {}), median of {} rounds, {} calls: {:.2f} s, {:.2f} s of them "
            "computing; "
            "{:.0f} MB/s, {:.0f} MB/s of computing, of which reading and decompressing alone does {:.0f} "
            "MB/s; "
            "at most {:.0f} MiB of memory\n";
  fmt::print(fmt::runtime(form), size, options.gzip, options.rounds, made.collectives, seconds, cpu,
             size / seconds, size / cpu, size / Median(reading.cpu_seconds), PeakMebibytes());
}

// Reads and imports in each round; returns the number of imported calls.
Result<size_t> Measure(const std::string& path, int rounds, Cost& reading, Cost& import) {
  size_t calls = 0;
  for (int round = 0; round < rounds; ++round) {
    const Stopwatch alone;
    DYNAMICCL_CHECK_OK(ReadAlone(path));
    alone.StopInto(reading);
    const Stopwatch whole;
    DYNAMICCL_TRY(const Imported imported, ImportFile(path, "kineto"));
    whole.StopInto(import);
    calls = CallsOf(imported.trace->sections[0]).calls.size();
  }
  return calls;
}

int Run(const Options& options) {
  const std::string path =
      options.keep.empty()
          ? (std::filesystem::temp_directory_path() / fmt::format("bench_{}.json", getpid())).string()
          : options.keep;
  const MadeTrace made = WriteTrace(path, options.gzip, options.megabytes * 1'000'000);
  Cost reading, import;
  const auto calls = Measure(path, options.rounds, reading, import);
  if (options.keep.empty()) std::filesystem::remove(path);
  if (!calls) {
    fmt::print(stderr, "{}", Describe(calls.error()));
    return 3;
  }
  Print(options, made, reading, import);
  if (*calls == made.collectives) return 0;
  fmt::print(stderr, "{} calls were imported, {} are in the file\n", *calls, made.collectives);
  return 1;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  CLI::App app{"How fast and in how much memory a Kineto trace is imported"};
  dynamiccl::Options options;
  app.add_flag("--json", options.json, "one JSON object instead of a sentence");
  app.add_flag("--gzip", options.gzip, "gzip the trace");
  app.add_option("--rounds", options.rounds, "repeats, of which the medians are told")
      ->check(CLI::Range(1, 1000));
  app.add_option("--keep", options.keep, "write the trace to this file and leave it there");
  app.add_option("megabytes", options.megabytes, "size of the trace")->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  return dynamiccl::Run(options);
}
