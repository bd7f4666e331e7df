// SPDX-License-Identifier: Apache-2.0
// Lists sends and receives by pair of ranks and compares them in order.
#include "tools/hang/hang_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// The sends of one rank to another, or its receives from another, in the order of issue.
struct OneWay {
  uint64_t earlier = 0;  // number of those before `calls`
  std::vector<const JobCall*> calls;

  uint64_t count() const { return earlier + calls.size(); }
  // Returns null if the call is no longer known.
  const JobCall* At(uint64_t i) const { return i < earlier || i >= count() ? nullptr : calls[i - earlier]; }
};

// The sends of one rank to another and the receives of the other rank from it.
struct Transfers {
  OneWay sends;
  OneWay receives;
  uint64_t matched() const { return std::min(sends.count(), receives.count()); }
};
// Transfers by (sender, receiver).
using TransfersByPair = std::map<std::pair<int32_t, int32_t>, Transfers>;

OneWay& SideOf(TransfersByPair& pairs, Collective direction, int32_t rank, int32_t peer) {
  return direction == Collective::kSend ? pairs[{rank, peer}].sends : pairs[{peer, rank}].receives;
}

TransfersByPair TransfersOf(const JobCommunicator& communicator) {
  TransfersByPair pairs;
  const auto is_compared = [&](int32_t peer) {
    const auto found = communicator.members.find(peer);
    return found != communicator.members.end() && found->second.has_all_transfers;
  };
  for (const auto& [rank, member] : communicator.members) {
    if (!member.has_all_transfers) continue;
    for (const auto& [way, count] : member.earlier)
      if (is_compared(way.second)) SideOf(pairs, way.first, rank, way.second).earlier = count;
    for (const JobCall& call : member.transfers)
      if (is_compared(call.root_or_peer))
        SideOf(pairs, call.call.collective, rank, call.root_or_peer).calls.push_back(&call);
  }
  return pairs;
}

// Returns a finding about the first send without a receive, or the first receive without a send.
HangFinding Alone(uint64_t id, int32_t from, int32_t to, const Transfers& transfers) {
  const bool send = transfers.sends.count() > transfers.receives.count();
  const JobCall* const call = (send ? transfers.sends : transfers.receives).At(transfers.matched());
  const std::string what = call == nullptr ? "data" : FormatBytes(call->call.bytes);
  const uint64_t number = call == nullptr ? 0 : call->call.call_number;
  HangFinding finding{HangKind::kTransferAlone, id, number, {send ? to : from}, {}};
  finding.text.push_back(
      send ? fmt::format("rank {} sent {} to rank {}, which did not receive it", from, what, to)
           : fmt::format("rank {} waits for {} from rank {}, which did not send it", to, what, from));
  finding.text.push_back(
      fmt::format("{} sends, {} receives between them", transfers.sends.count(), transfers.receives.count()));
  return finding;
}

// Returns a finding about the first send that is known and whose receive has another size.
std::optional<HangFinding> UnlikeSizes(uint64_t id, int32_t from, int32_t to, const Transfers& transfers) {
  for (uint64_t i = std::max(transfers.sends.earlier, transfers.receives.earlier); i < transfers.matched();
       ++i) {
    const CollectiveCall& sent = transfers.sends.At(i)->call;
    const CollectiveCall& received = transfers.receives.At(i)->call;
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
    if (!alone && transfers.sends.count() != transfers.receives.count())
      alone = Alone(id, pair.first, pair.second, transfers);
  }
  return alone;
}

std::vector<int32_t> RanksWithUnmatchedTransfers(const JobCalls& job) {
  std::set<int32_t> ranks;
  for (const auto& [id, communicator] : job.communicators)
    for (const auto& [rank, member] : communicator.members) {
      const bool has_transfers = !member.transfers.empty() || !member.earlier.empty();
      const int32_t of_job = job.processes[member.process].rank;
      if (has_transfers && !member.has_all_transfers) ranks.insert(of_job >= 0 ? of_job : rank);
    }
  return {ranks.begin(), ranks.end()};
}

}  // namespace dynamiccl
