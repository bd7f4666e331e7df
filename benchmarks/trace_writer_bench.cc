// SPDX-License-Identifier: Apache-2.0
// Measures what one record costs the job's thread: trace_writer_bench [--json] [RECORDS]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "traces/record/recorder.h"

namespace dynamiccl {
namespace {

// Nanoseconds of one record.
struct Cost {
  // Time of Append alone.
  double append_ns;
  // Time of Append and one reading of the clock, as in the interposer.
  double append_with_clock_ns;
};

// Returns the median of 9 rounds, so that an interrupted round does not count.
template <typename Function>
double MedianNanoseconds(uint64_t records, const Function& function) {
  std::vector<double> rounds;
  for (int round = 0; round < 9; ++round) {
    const int64_t begin = MonotonicNanoseconds();
    for (uint64_t i = 0; i < records; ++i) function(i);
    rounds.push_back(static_cast<double>(MonotonicNanoseconds() - begin) / static_cast<double>(records));
  }
  return MedianInPlace(rounds);
}

Cost Measure(Recorder& recorder, uint64_t records) {
  TraceRecord record = EmptyRecord(RecordKind::kCollective, 0);
  const auto append = [&](uint64_t i) {
    record.call_number = i;
    recorder.Append(record);
  };
  append(0);  // maps this thread's ring
  const double alone = MedianNanoseconds(records, append);
  const double with_clock = MedianNanoseconds(records, [&](uint64_t i) {
    record.issued_ns = MonotonicNanoseconds();
    append(i);
  });
  return {alone, with_clock};
}

int Run(bool json, uint64_t records) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("bench_{}.ctrace", getpid())).string();
  const auto recorder = Recorder::Open({.path = path, .records_per_thread = 16384, .library = "bench"});
  if (!recorder) {
    fmt::print(stderr, "{}", Describe(recorder.error()));
    return 3;
  }
  const Cost cost = Measure(**recorder, records);
  std::filesystem::remove(path);
  const char* const form =
      json ? "{{\"schema\":1,\"records\":{},\"append_ns\":{:.1f},\"append_with_clock_ns\":{:.1f}}}\n"
           : "{} records a round: {:.1f} ns a record, {:.1f} ns with the clock\n";
  fmt::print(fmt::runtime(form), records, cost.append_ns, cost.append_with_clock_ns);
  return 0;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  bool json = false;
  uint64_t records = 1'000'000;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json")
      json = true;
    else
      records = std::strtoull(argv[i], nullptr, 10);
  }
  if (records == 0) {
    std::fputs("usage: trace_writer_bench [--json] [RECORDS]\n", stderr);
    return 2;
  }
  return dynamiccl::Run(json, records);
}
