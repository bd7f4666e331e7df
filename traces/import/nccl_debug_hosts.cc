// SPDX-License-Identifier: Apache-2.0
// Processes in containers often have the same ids on every host, and one host's name may end with another's:
// gpu1 and mgpu1. Only their ranks in a communicator distinguish such hosts from text before a name.
#include "traces/import/nccl_debug_hosts.h"

#include <optional>

namespace dynamiccl {
namespace {

// Adds the text to the set, unless it is there already. Returns the set's own copy.
std::string_view Kept(std::set<std::string, std::less<>>& texts, std::string_view text) {
  const auto place = texts.find(text);
  return place != texts.end() ? *place : *texts.emplace(text).first;
}

}  // namespace

std::string_view DebugHosts::Of(const DebugPiece& piece, bool cut) {
  constexpr size_t kShortest = 3;  // shorter names, such as "1" and "11", may be hosts by themselves
  std::optional<DebugCommunicator> init;
  if (piece.text.find(" - Init ") != std::string_view::npos) init = ParseDebugCommunicator(piece.text);
  if (init) ranks_[{Kept(texts_, piece.host), piece.process_id, piece.device}].emplace(init->id, init->rank);
  if (const auto known = hosts_.find(piece.host); known != hosts_.end()) {
    processes_.emplace(*known, piece.process_id);
    return *known;
  }
  for (const std::string& host : hosts_) {
    if (!piece.host.ends_with(host)) continue;
    if (cut) return host;
    if (host.size() < kShortest || !processes_.contains({host, piece.process_id})) continue;
    const Process process{host, piece.process_id, piece.device};
    if (AreOtherRanks(process, {piece.host, piece.process_id, piece.device})) continue;
    // Until the host itself has named its rank in this communicator, the longer name may be another host's.
    const auto named = ranks_.find(process);
    const bool known = !init || (named != ranks_.end() && named->second.contains(init->id));
    return known ? std::string_view(host) : Kept(texts_, piece.host);
  }
  if (cut) return Kept(texts_, piece.host);
  const std::string_view host = Kept(hosts_, piece.host);
  processes_.emplace(host, piece.process_id);
  return host;
}

// True if both are in the same communicator with unlike ranks.
bool DebugHosts::AreOtherRanks(const Process& one, const Process& other) const {
  const auto first = ranks_.find(one);
  const auto second = ranks_.find(other);
  if (first == ranks_.end() || second == ranks_.end()) return false;
  for (const auto& [id, rank] : first->second) {
    const auto same = second->second.find(id);
    if (same != second->second.end() && same->second != rank) return true;
  }
  return false;
}

}  // namespace dynamiccl
