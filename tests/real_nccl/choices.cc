// SPDX-License-Identifier: Apache-2.0
// Joins NCCL's log with the driver's lines. Both stand in one stream, in the order of rank 0's calls.
#include "tests/real_nccl/choices.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/real_nccl/tuning_log.h"

namespace dynamiccl::real_nccl {
namespace {

// A line such as "driver: 0 AllReduce 1024 launched 1 ncclDevKernel_AllReduce_Sum_f32_TREE_LL 1 96".
struct DriverLine {
  std::string function;
  size_t bytes = 0;
  int kernels = 0;
  std::string kernel;
  int grid = 0;
  int block = 0;
};

std::optional<DriverLine> ParseDriverLine(const std::string& line) {
  std::istringstream words(line);
  std::string driver, launched;
  int rank = 0;
  DriverLine parsed;
  words >> driver >> rank >> parsed.function >> parsed.bytes >> launched >> parsed.kernels >> parsed.kernel >>
      parsed.grid >> parsed.block;
  if (!words || driver != "driver:" || launched != "launched") return std::nullopt;
  return parsed;
}

// Parses a line of rank 0 such as "witness: 0 AllReduce 1024 TREE LL 16". The result has no channels, like a
// line of a log that does not report them.
std::optional<TuningLine> ParseWitnessLine(const std::string& line) {
  std::istringstream words(line);
  std::string witness;
  int rank = -1;
  TuningLine parsed;
  words >> witness >> rank >> parsed.function >> parsed.bytes >> parsed.algorithm >> parsed.protocol;
  if (!words || witness != "witness:" || rank != 0) return std::nullopt;
  return parsed;
}

// Converts the bytes of a log line to NCCL's total. Some releases log the bytes of one rank's count. For
// AllGather and ReduceScatter the total is this number times the ranks.
size_t TotalBytes(const TuningLine& line, const std::string& function, const NcclRelease& release,
                  int ranks) {
  const bool shared_out = function == "AllGather" || function == "ReduceScatter";
  const bool of_one_rank = release.tells_channels() || release.logs_no_choice();
  return shared_out && of_one_rank ? line.bytes * static_cast<size_t>(ranks) : line.bytes;
}

std::string Mismatch(const DriverLine& call, const TuningLine& line, const NcclRelease& release, int ranks) {
  if (call.kernels != 1) return std::to_string(call.kernels) + " kernels";
  if (!line.function.empty() && line.function != call.function) return "another function";
  if (TotalBytes(line, call.function, release, ranks) != call.bytes) return "other bytes";
  if (call.kernel.find("_" + call.function + "_") == std::string::npos) return "kernel " + call.kernel;
  if (release.tells_channels() && line.channels() != call.grid)
    return "a kernel of " + std::to_string(call.grid) + " channels";
  return "";
}

// Returns what is known of a choice that a tuner named and that the log hides: function, bytes and algorithm.
TuningLine HiddenLine(const DriverLine& call) {
  const bool tree = call.kernel.find("_TREE") != std::string::npos;
  return {.function = call.function, .bytes = call.bytes, .algorithm = tree ? "TREE" : "RING"};
}

// Returns the choice of a call, or returns nothing and sets *error.
std::optional<Choice> Join(const DriverLine& call, const std::optional<TuningLine>& logged,
                           const NcclRelease& release, int ranks, std::string* error) {
  if (!logged && !release.hides_tuners_choice()) {
    *error = "no line in NCCL's log";
    return std::nullopt;
  }
  const TuningLine line = logged.value_or(HiddenLine(call));
  *error = Mismatch(call, line, release, ranks);
  const auto algorithm = ParseAlgorithm(line.algorithm);
  const auto protocol = logged ? ParseProtocol(line.protocol) : Protocol::kUndefined;
  if (error->empty() && !(algorithm && protocol)) *error = "unknown: " + line.algorithm + "/" + line.protocol;
  if (!error->empty()) return std::nullopt;
  return Choice{call.function, call.bytes, *algorithm, *protocol, call.grid, call.block};
}

}  // namespace

bool FitsThreads(Algorithm algorithm, Protocol protocol, int threads) {
  constexpr int kLeast = 96, kRingSync = 32, kTreeSync = 128;
  const int more = protocol != Protocol::kSimple ? 0 : algorithm == Algorithm::kTree ? kTreeSync : kRingSync;
  for (const int workers : {64, 128, 256, 512}) {
    if (threads == std::max(kLeast, workers + more)) return true;
  }
  return false;
}

std::ostream& operator<<(std::ostream& out, const Choice& choice) {
  return out << choice.function << " " << choice.bytes << " B " << LogName(choice.algorithm) << "/"
             << LogName(choice.protocol) << "/" << choice.channels;
}

std::optional<std::vector<Choice>> ChoicesOf(const std::string& output, const NcclRelease& release, int ranks,
                                             std::string* error) {
  std::vector<Choice> choices;
  std::optional<TuningLine> logged;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto tuning = release.logs_no_choice() ? ParseWitnessLine(line) : ParseTuningLine(line);
    if (tuning) {
      logged = tuning;
      continue;
    }
    const auto call = ParseDriverLine(line);
    if (!call) continue;
    const auto choice = Join(*call, logged, release, ranks, error);
    if (!choice) {
      *error = "call " + std::to_string(choices.size()) + " (" + line + "): " + *error;
      return std::nullopt;
    }
    choices.push_back(*choice);
    logged.reset();
  }
  return choices;
}

bool AllRanksLaunchedAlike(const std::string& output, int ranks) {
  std::set<std::string> digests;
  int lines_seen = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t calls = line.find(" calls ");
    if (!line.starts_with("driver: ") || calls == std::string::npos) continue;
    digests.insert(line.substr(calls));
    ++lines_seen;
  }
  return lines_seen == ranks && digests.size() == 1;
}

}  // namespace dynamiccl::real_nccl
