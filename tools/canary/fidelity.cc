// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/fidelity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "tests/real_nccl/init_log.h"
#include "tools/canary/cell_output.h"
#include "tools/canary/release_library.h"

namespace dynamiccl {
namespace {

void ReadLine(const std::string& line, LoggedJob* job) {
  static const std::regex kRanks(R"((?:nranks|nRanks) (\d+) )");
  const auto [transport, adapter] = ConnectionOf(line);
  if (!transport.empty()) {
    ++job->transports[transport];
    if (!adapter.empty()) job->adapters.insert(adapter);
    return;
  }
  if (!job->release) job->release = ReleaseInText(line);
  std::smatch match;
  if (std::regex_search(line, match, kRanks))
    job->ranks = std::max(job->ranks, std::atoi(match[1].str().c_str()));
  if (job->channels > 0 || line.find(" coll channels") == std::string::npos) return;
  const auto channels = real_nccl::ParseChannels(line).value_or(real_nccl::LoggedChannels{});
  job->channels = channels.collective;
  job->nvls_channels = channels.nvls;
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
  std::set<std::string> adapters;  // a log does not say of which node
  for (const auto& [name, connections] : cell.adapters) adapters.insert(name.substr(name.find('/') + 1));
  if (!logged.adapters.empty())
    compare("adapters", std::to_string(logged.adapters.size()), std::to_string(adapters.size()));
  return found;
}

}  // namespace dynamiccl
