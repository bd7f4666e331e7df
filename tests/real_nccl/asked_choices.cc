// SPDX-License-Identifier: Apache-2.0
// Reads decision logs, and writes policies and rules.
#include "tests/real_nccl/asked_choices.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::real_nccl {
namespace {

// A line is "<communicator> <call number> <collective> <bytes> <role> <algorithm>/<protocol>/<channels> <who>
// v<table>".
struct LogLine {
  uint64_t call_number = 0;
  std::string rest;  // the text from the collective on
};

std::optional<LogLine> ParseLogLine(const std::string& line) {
  std::istringstream words(line);
  std::string communicator;
  LogLine parsed;
  if (!(words >> communicator >> parsed.call_number)) return std::nullopt;
  std::getline(words >> std::ws, parsed.rest);
  return parsed;
}

std::optional<AskedChoice> ParseAsked(const std::string& rest) {
  std::istringstream words(rest);
  AskedChoice asked;
  std::string role, config;
  if (!(words >> asked.function >> asked.bytes >> role >> config >> asked.decided_by)) return std::nullopt;
  if (config == "-") return asked;
  std::istringstream parts(config);
  std::string algorithm, protocol;
  std::getline(parts, algorithm, '/');
  std::getline(parts, protocol, '/');
  parts >> asked.channels;
  const auto known_algorithm = ParseAlgorithm(algorithm);
  const auto known_protocol = ParseProtocol(protocol);
  if (!known_algorithm || !known_protocol) return std::nullopt;
  asked.leaves_nccl_alone = false;
  asked.algorithm = *known_algorithm;
  asked.protocol = *known_protocol;
  return asked;
}

std::string Folded(std::string_view name) {
  std::string folded(name);
  std::transform(folded.begin(), folded.end(), folded.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return folded;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const AskedChoice& asked) {
  out << asked.function << " " << asked.bytes << " B ";
  if (asked.leaves_nccl_alone) return out << "NCCL's own";
  return out << LogName(asked.algorithm) << "/" << LogName(asked.protocol) << "/" << asked.channels;
}

std::optional<AskedChoice> ParseDecisionLine(const std::string& line) {
  const auto parsed = ParseLogLine(line);
  return parsed ? ParseAsked(parsed->rest) : std::nullopt;
}

std::optional<std::vector<AskedChoice>> ReadAskedChoices(const std::string& path, int ranks,
                                                         std::string* error) {
  std::map<uint64_t, std::vector<std::string>> calls;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto parsed = ParseLogLine(line);
    if (parsed) calls[parsed->call_number].push_back(parsed->rest);
  }
  std::vector<AskedChoice> asked;
  for (const auto& [number, lines] : calls) {
    const auto first = ParseAsked(lines.front());
    // NCCL 2.20 and 2.21 ask twice for some calls, so each rank may have two lines for one call.
    const bool complete = lines.size() % static_cast<size_t>(ranks) == 0;
    if (!first || !complete || std::count(lines.begin(), lines.end(), lines.front()) != std::ssize(lines)) {
      *error = "call " + std::to_string(number) + " was decided " + std::to_string(lines.size()) +
               " times, not alike or not by all ranks: " + lines.front() + " ... " + lines.back();
      return std::nullopt;
    }
    asked.push_back(*first);
  }
  return asked;
}

std::optional<std::vector<AskedChoice>> ReadAskedSituations(const std::string& path,
                                                            const std::vector<Choice>& calls,
                                                            std::string* error) {
  std::map<std::pair<std::string, size_t>, std::string> situations;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto asked = ParseDecisionLine(line);
    if (!asked) continue;
    const auto known = situations.emplace(std::pair(asked->function, asked->bytes), line).first;
    if (known->second == line) continue;
    *error = "decided not alike: " + known->second + " ... " + line;
    return std::nullopt;
  }
  std::vector<AskedChoice> asked;
  for (const Choice& call : calls) {
    const auto row = situations.find({call.function, call.bytes});
    if (row == situations.end()) {
      *error = "no decision about " + call.function + " of " + std::to_string(call.bytes) + " bytes";
      return std::nullopt;
    }
    asked.push_back(*ParseDecisionLine(row->second));
  }
  return asked;
}

std::string WriteRandomPolicy(const std::string& path, uint64_t seed) {
  const auto policy = test::MakeRandomPolicy(seed);
  const auto digest = WritePolicyFile(path, *policy);
  return digest ? ToHex(*digest) : "";
}

void WriteSomeRules(const std::string& path) {
  // Small messages get few channels and large messages many, because NCCL gives each channel at least 32 KiB
  // of traffic.
  std::ofstream(path) << "allreduce,0,65536,ring,ll,1,-1,-1\n"
                         "allreduce,65537,1048576,tree,ll,2,-1,-1\n"
                         "allreduce,1048577,67108864,ring,simple,5,-1,-1\n"
                         "allreduce,67108865,1073741824,ring,simple,48,-1,-1\n"
                         "allgather,0,65536,ring,simple,1,-1,-1\n"
                         "allgather,65537,16777216,ring,ll,3,-1,-1\n"
                         "reducescatter,65537,16777216,ring,simple,7,-1,-1\n"
                         "broadcast,65537,16777216,ring,simple,4,-1,-1\n"
                         "reduce,0,65536,ring,ll,1,-1,-1\n"
                         "reduce,65537,1073741824,ring,simple,-1,-1,-1\n";
}

void WriteRulesWithoutChannels(const std::string& path, const std::vector<AskedChoice>& asked) {
  std::ofstream file(path);
  std::set<std::pair<std::string, size_t>> written;
  for (const AskedChoice& row : asked) {
    if (row.leaves_nccl_alone || !written.emplace(row.function, row.bytes).second) continue;
    file << Folded(row.function) << "," << row.bytes << "," << row.bytes << ","
         << Folded(LogName(row.algorithm)) << "," << Folded(LogName(row.protocol)) << ",-1,-1,-1\n";
  }
}

}  // namespace dynamiccl::real_nccl
