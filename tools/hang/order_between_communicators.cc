// SPDX-License-Identifier: Apache-2.0
// Compares, for each pair of communicators that two processes share, the order of their newest calls.
#include "tools/hang/hang_checks.h"

#include <fmt/format.h>

#include <map>

namespace dynamiccl {
namespace {

// Number of the newest calls of each rank and communicator that are compared. The time grows with the square
// of this number.
constexpr uint64_t kNewestCalls = 16;

// Holds what one process issued on two communicators to which it belongs. `rank` is its rank in the first.
struct OnBoth {
  size_t process = 0;
  int32_t rank = 0;  // in the first communicator
  const JobMember* first = nullptr;
  const JobMember* second = nullptr;
};

// Ids of two communicators, the lower first.
using Pair = std::pair<uint64_t, uint64_t>;

// The processes that share each pair of communicators.
std::map<Pair, std::vector<OnBoth>> SharersOf(const JobCalls& job) {
  struct Place {
    uint64_t id;
    int32_t rank;
    const JobMember* member;
  };
  std::map<size_t, std::vector<Place>> by_process;
  for (const auto& [id, communicator] : job.communicators) {
    for (const auto& [rank, member] : communicator.members)
      by_process[member.process].push_back({id, rank, &member});
  }
  std::map<Pair, std::vector<OnBoth>> sharers;
  for (const auto& [process, places] : by_process) {
    for (size_t i = 0; i < places.size(); ++i) {
      for (size_t j = i + 1; j < places.size(); ++j)
        sharers[{places[i].id, places[j].id}].push_back(
            {process, places[i].rank, places[i].member, places[j].member});
    }
  }
  return sharers;
}

// Numbers of two calls, one on each communicator, that both processes issued but in opposite order.
std::optional<std::pair<uint64_t, uint64_t>> Inversion(const OnBoth& a, const OnBoth& b) {
  const auto newest = [](const JobMember& member) {
    return std::max(member.first(), member.next - std::min(member.next, kNewestCalls));
  };
  for (uint64_t x = newest(*a.first); x < a.first->next; ++x) {
    const JobCall* const ax = a.first->At(x, 0);
    const JobCall* const bx = b.first->At(x, 0);
    if (ax == nullptr || bx == nullptr) continue;
    for (uint64_t y = newest(*a.second); y < a.second->next; ++y) {
      const JobCall* const ay = a.second->At(y, 0);
      const JobCall* const by = b.second->At(y, 0);
      if (ay == nullptr || by == nullptr) continue;
      if ((ax->order < ay->order) != (bx->order < by->order)) return std::pair(x, y);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<HangFinding> UnlikeOrder(const JobCalls& job) {
  for (const auto& [pair, sharers] : SharersOf(job)) {
    for (size_t i = 1; i < sharers.size(); ++i) {
      const auto inverted = Inversion(sharers[0], sharers[i]);
      if (!inverted) continue;
      HangFinding finding{HangKind::kOrderDiffers, pair.first, inverted->first, {}, {}};
      finding.ranks = {sharers[0].rank, sharers[i].rank};
      finding.text.push_back(
          fmt::format("{} issued call {} on communicator {:#x} and call {} on {:#x} in unlike order",
                      RankList(finding.ranks), inverted->first, pair.first, inverted->second, pair.second));
      finding.text.emplace_back(
          "on one stream, or where the device has no room for both, such ranks wait for each other");
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace dynamiccl
