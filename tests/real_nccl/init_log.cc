// SPDX-License-Identifier: Apache-2.0
#include "tests/real_nccl/init_log.h"

#include <cstdlib>
#include <regex>

namespace dynamiccl::real_nccl {

std::optional<LoggedChannels> ParseChannels(const std::string& text) {
  static const std::regex kChannels(
      R"((\d+) coll channels, (?:\d+ collnet channels, )?(\d+) nvls(?: channels)?, (\d+) p2p channels, (\d+) p2p)");
  std::smatch match;
  if (!std::regex_search(text, match, kChannels)) return std::nullopt;
  const auto number = [&](size_t group) { return std::atoi(match[group].str().c_str()); };
  return LoggedChannels{number(1), number(2), number(3), number(4)};
}

std::optional<Algorithm> AlgorithmOfGraph(int id) {
  constexpr Algorithm kOfGraph[] = {Algorithm::kRing, Algorithm::kTree, Algorithm::kCollnetChain,
                                    Algorithm::kNvls, Algorithm::kCollnetDirect};
  if (id < 0 || id >= static_cast<int>(std::size(kOfGraph))) return std::nullopt;
  return kOfGraph[id];
}

}  // namespace dynamiccl::real_nccl
