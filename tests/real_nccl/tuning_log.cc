// SPDX-License-Identifier: Apache-2.0
// Parses NCCL's TUNING lines. From 2.24 on a line has this form:
//   <host>:<pid>:<tid> [<device>] NCCL INFO AllReduce: 1024 Bytes -> Algo TREE proto LL
//   channel{Lo..Hi}={0..0}
// Before 2.24 it has this form:
//   <host>:<pid>:<tid> [<device>] NCCL INFO 1024 Bytes -> Algo 0 proto 0 time 25.268644
#include "tests/real_nccl/tuning_log.h"

#include <regex>

#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"

namespace dynamiccl::real_nccl {

namespace {

std::optional<TuningLine> ParseOldLine(std::string_view line) {
  static const std::regex kPattern(R"(INFO (\d+) Bytes -> Algo (\d) proto (\d) time [\d.]+)");
  std::cmatch match;
  if (!std::regex_search(line.data(), line.data() + line.size(), match, kPattern)) return std::nullopt;
  return TuningLine{.function = "",
                    .bytes = std::stoull(match[1]),
                    .algorithm = std::string(LogName(static_cast<Algorithm>(std::stoi(match[2])))),
                    .protocol = std::string(LogName(static_cast<Protocol>(std::stoi(match[3]))))};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const TuningLine& line) {
  return out << line.function << " " << line.bytes << " B " << line.algorithm << "/" << line.protocol
             << " channels " << line.first_channel << ".." << line.last_channel;
}

std::optional<TuningLine> ParseTuningLine(std::string_view line) {
  static const std::regex kPattern(
      R"((\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})");
  std::cmatch match;
  if (!std::regex_search(line.data(), line.data() + line.size(), match, kPattern)) return ParseOldLine(line);
  return TuningLine{.function = match[1],
                    .bytes = std::stoull(match[2]),
                    .algorithm = match[3],
                    .protocol = match[4],
                    .first_channel = std::stoi(match[5]),
                    .last_channel = std::stoi(match[6])};
}

std::vector<TuningLine> ParseTuningLog(std::string_view log) {
  std::vector<TuningLine> lines;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    if (auto line = ParseTuningLine(log.substr(begin, end - begin))) lines.push_back(*line);
    begin = end + 1;
  }
  return lines;
}

}  // namespace dynamiccl::real_nccl
