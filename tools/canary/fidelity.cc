// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/fidelity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "tools/canary/cell_output.h"
#include "tools/canary/release_library.h"

namespace dynamiccl {
namespace {

int NumberIn(const std::smatch& match, size_t group) {
  return static_cast<int>(std::strtol(match[group].str().c_str(), nullptr, 10));
}

void ReadLine(const std::string& line, LoggedJob* job) {
  static const std::regex kRanks(R"(rank \d+ nranks (\d+) )");
  static const std::regex kNodes(R"(nRanks (\d+) nNodes (\d+) )");
  static const std::regex kChannels(R"((\d+) coll channels, (?:\d+ collnet channels, )?(\d+) nvls)");
  const auto [transport, adapter] = ConnectionOf(line);
  if (!transport.empty()) {
    ++job->transports[transport];
    if (!adapter.empty()) job->adapters.insert(adapter);
    return;
  }
  std::smatch match;
  if (!job->release) job->release = ReleaseInText(line);
  if (std::regex_search(line, match, kNodes)) {
    job->ranks = std::max(job->ranks, NumberIn(match, 1));
    job->nodes = std::max(job->nodes, NumberIn(match, 2));
  } else if (std::regex_search(line, match, kRanks)) {
    job->ranks = std::max(job->ranks, NumberIn(match, 1));
  } else if (job->channels == 0 && std::regex_search(line, match, kChannels)) {
    job->channels = NumberIn(match, 1);
    job->nvls_channels = NumberIn(match, 2);
  }
}

template <typename Values>
std::string Joined(const Values& values) {
  std::vector<std::string> names;
  for (const auto& one : values) {
    if constexpr (requires { one.first; })
      names.push_back(one.first);
    else
      names.push_back(one);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

LoggedJob ReadNcclLog(const std::string& text) {
  LoggedJob job;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ReadLine(line, &job);
  return job;
}

std::vector<std::string> Disagreements(const LoggedJob& logged, const Cell& cell) {
  std::vector<std::string> found;
  const auto compare = [&](const char* what, const std::string& theirs, const std::string& ours) {
    if (theirs != ours) found.push_back(fmt::format("{}: {} in the log, {} here", what, theirs, ours));
  };
  if (logged.ranks > 0) compare("ranks", std::to_string(logged.ranks), std::to_string(cell.ranks));
  if (logged.channels > 0) {
    compare("channels", std::to_string(logged.channels), std::to_string(cell.channels));
    compare("NVLS channels", std::to_string(logged.nvls_channels), std::to_string(cell.nvls_channels));
  }
  if (!logged.transports.empty()) compare("transports", Joined(logged.transports), Joined(cell.transports));
  if (!logged.adapters.empty())
    compare("adapters", std::to_string(logged.adapters.size()), std::to_string(cell.adapters.size()));
  return found;
}

}  // namespace dynamiccl
