// SPDX-License-Identifier: Apache-2.0
// Lists sends and receives by pair of ranks and compares them in order.
#include "tools/hang/hang_checks.h"

#include <fmt/format.h>

#include <map>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// The sends of one rank to another and the receives of the other rank from it, each in the order of issue.
struct Transfers {
  std::vector<const JobCall*> sends;
  std::vector<const JobCall*> receives;
};

// Transfers by (sender, receiver).
std::map<std::pair<int32_t, int32_t>, Transfers> TransfersOf(const JobCommunicator& communicator) {
  std::map<std::pair<int32_t, int32_t>, Transfers> pairs;
  for (const auto& [rank, member] : communicator.members) {
    if (!member.complete) continue;
    for (const JobCall& call : member.transfers) {
      const auto peer = communicator.members.find(call.root_or_peer);
      if (peer == communicator.members.end() || !peer->second.complete) continue;
      if (call.call.collective == Collective::kSend)
        pairs[{rank, call.root_or_peer}].sends.push_back(&call);
      else
        pairs[{call.root_or_peer, rank}].receives.push_back(&call);
    }
  }
  return pairs;
}

// Returns a finding about the first send without a receive, or the first receive without a send.
HangFinding Alone(uint64_t id, int32_t from, int32_t to, const Transfers& transfers) {
  const bool send = transfers.sends.size() > transfers.receives.size();
  const size_t matched = std::min(transfers.sends.size(), transfers.receives.size());
  const JobCall& call = send ? *transfers.sends[matched] : *transfers.receives[matched];
  HangFinding finding{HangKind::kTransferAlone, id, call.call.call_number, {send ? to : from}, {}};
  finding.text.push_back(send ? fmt::format("rank {} sent {} to rank {}, which did not receive it", from,
                                            FormatBytes(call.call.bytes), to)
                              : fmt::format("rank {} waits for {} from rank {}, which did not send it", to,
                                            FormatBytes(call.call.bytes), from));
  finding.text.push_back(
      fmt::format("{} sends, {} receives between them", transfers.sends.size(), transfers.receives.size()));
  return finding;
}

// Returns a finding about the first send whose receive has another size.
std::optional<HangFinding> UnlikeSizes(uint64_t id, int32_t from, int32_t to, const Transfers& transfers) {
  const size_t matched = std::min(transfers.sends.size(), transfers.receives.size());
  for (size_t i = 0; i < matched; ++i) {
    const CollectiveCall& sent = transfers.sends[i]->call;
    const CollectiveCall& received = transfers.receives[i]->call;
    if (sent.bytes == received.bytes) continue;
    HangFinding finding{HangKind::kTransfersDiffer, id, sent.call_number, {from, to}, {}};
    finding.text.push_back(fmt::format("transfer {} from rank {} to rank {}: sent {}, received {}", i, from,
                                       to, FormatBytes(sent.bytes), FormatBytes(received.bytes)));
    return finding;
  }
  return std::nullopt;
}

}  // namespace

std::optional<HangFinding> FirstUnmatchedTransfer(uint64_t id, const JobCommunicator& communicator) {
  std::optional<HangFinding> alone;
  for (const auto& [pair, transfers] : TransfersOf(communicator)) {
    if (auto unlike = UnlikeSizes(id, pair.first, pair.second, transfers)) return unlike;
    if (!alone && transfers.sends.size() != transfers.receives.size())
      alone = Alone(id, pair.first, pair.second, transfers);
  }
  return alone;
}

}  // namespace dynamiccl
