// SPDX-License-Identifier: Apache-2.0
// Measures how fast and in how much memory a file of another tool is imported.
//
//   trace_import_bench [--format NAME] [--json] [--gzip] [--rounds N] [--keep FILE] [MEGABYTES]
//
// Writes a file of this format (default kineto) and size (default 1000) to the temporary folder. The file is
// similar to real ones. Each round first only reads and decompresses the file, and then imports it.
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "benchmarks/import_documents.h"
#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "traces/format/trace_calls.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// A file that stores text unchanged, or gzips it as PyTorch does.
class TextFile {
 public:
  TextFile(const std::string& path, bool gzip) : file_(gzopen(path.c_str(), gzip ? "wb6" : "wbT")) {}
  ~TextFile() { gzclose(file_); }
  void Put(const std::string& text) { gzwrite(file_, text.data(), static_cast<unsigned>(text.size())); }

 private:
  gzFile file_;
};

// Size and content of the written file.
struct MadeFile {
  uint64_t bytes = 0;  // without compression
  uint64_t calls = 0;
};

MadeFile WriteDocument(const ImportDocument& document, const std::string& path, bool gzip, uint64_t bytes) {
  constexpr uint64_t kSampled = 100;
  uint64_t sampled = 0;
  for (uint64_t i = 1; i <= kSampled; ++i) sampled += document.piece(i).size();
  const uint64_t pieces = std::max<uint64_t>(bytes * kSampled / sampled / 4 * 4, 4);
  TextFile file(path, gzip);
  MadeFile made{.calls = static_cast<uint64_t>(document.calls * static_cast<double>(pieces))};
  const auto put = [&](const std::string& text) {
    file.Put(text);
    made.bytes += text.size();
  };
  put(document.head(pieces));
  for (uint64_t i = 1; i <= pieces; ++i) put(document.piece(i));
  put(std::string(document.foot));
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

// Measures the time of one reading, beginning at the stopwatch's construction.
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
  std::string format = "kineto";
};

void Print(const Options& options, const MadeFile& made, const Cost& reading, const Cost& import) {
  const double size = static_cast<double>(made.bytes) * 1e-6;
  const double seconds = Median(import.seconds), cpu = Median(import.cpu_seconds);
  const char* const form =
      options.json
          ? "{{\"schema\":3,\"format\":\"{}\",\"megabytes\":{:.0f},\"gzip\":{},\"rounds\":{},\"calls\":{},"
            "\"seconds\":{:.2f},"
            "\"cpu_seconds\":{:.2f},\"megabytes_per_second\":{:.0f},\"megabytes_per_cpu_second\":{:.0f},"
            "\"reading_megabytes_per_cpu_second\":{:.0f},\"peak_rss_mib\":{:.0f}}}\n"
          : "{}: {:.0f} MB (gzip: {}), median of {} rounds, {} calls: {:.2f} s, {:.2f} s of them "
            "computing; "
            "{:.0f} MB/s, {:.0f} MB/s of computing, of which reading and decompressing alone does {:.0f} "
            "MB/s; "
            "at most {:.0f} MiB of memory\n";
  fmt::print(fmt::runtime(form), options.format, size, options.gzip, options.rounds, made.calls, seconds, cpu,
             size / seconds, size / cpu, size / Median(reading.cpu_seconds), PeakMebibytes());
}

// Returns the number of calls of a trace, or of times of a measurement file.
size_t CallsIn(const Imported& imported) {
  size_t calls = 0;
  if (imported.trace) {
    for (const TraceSection& section : imported.trace->sections) calls += CallsOf(section).calls.size();
  }
  if (imported.measurements) {
    for (const Measurement& row : imported.measurements->rows) calls += row.microseconds.size();
  }
  return calls;
}

// Reads and imports the file in each round. Returns the number of imported calls.
Result<size_t> Measure(const std::string& path, int rounds, Cost& reading, Cost& import) {
  size_t calls = 0;
  for (int round = 0; round < rounds; ++round) {
    const Stopwatch alone;
    DYNAMICCL_CHECK_OK(ReadAlone(path));
    alone.StopInto(reading);
    const Stopwatch whole;
    DYNAMICCL_TRY(const Imported imported, ImportFile(path, ""));
    whole.StopInto(import);
    calls = CallsIn(imported);
  }
  return calls;
}

int Run(const Options& options) {
  const auto document =
      std::ranges::find(AllImportDocuments(), std::string_view(options.format), &ImportDocument::name);
  const std::string path =
      options.keep.empty()
          ? (std::filesystem::temp_directory_path() / fmt::format("bench_{}.json", getpid())).string()
          : options.keep;
  const MadeFile made = WriteDocument(*document, path, options.gzip, options.megabytes * 1'000'000);
  Cost reading, import;
  const auto calls = Measure(path, options.rounds, reading, import);
  if (options.keep.empty()) std::filesystem::remove(path);
  if (!calls) {
    fmt::print(stderr, "{}", Describe(calls.error()));
    return 3;
  }
  Print(options, made, reading, import);
  if (*calls == made.calls) return 0;
  fmt::print(stderr, "{} calls were imported, {} are in the file\n", *calls, made.calls);
  return 1;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  CLI::App app{"How fast and in how much memory a file of another tool is imported"};
  dynamiccl::Options options;
  std::vector<std::string> formats;
  for (const auto& document : dynamiccl::AllImportDocuments()) formats.emplace_back(document.name);
  app.add_option("--format", options.format, "the kind of file")->check(CLI::IsMember(formats));
  app.add_flag("--json", options.json, "one JSON object instead of a sentence");
  app.add_flag("--gzip", options.gzip, "gzip the file");
  app.add_option("--rounds", options.rounds, "repeats, of which the medians are told")
      ->check(CLI::Range(1, 1000));
  app.add_option("--keep", options.keep, "write to this file and leave it there");
  app.add_option("megabytes", options.megabytes, "size of the file")->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  return dynamiccl::Run(options);
}
