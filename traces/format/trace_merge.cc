// SPDX-License-Identifier: Apache-2.0
// The check collects each rank's collectives by communicator, in the order of (call number, index in group).
// Then it compares every rank with the first rank by walking both sequences in step.
#include "traces/format/trace_merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "src/collective/size_class.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// The collectives that one rank issued on one communicator, in order.
struct RankSequence {
  int32_t rank = 0;
  bool may_end_early = false;   // the process was killed
  bool may_begin_late = false;  // the section lost records
  bool may_have_gaps = false;   // the result of MayHaveGaps
  bool has_point_to_point = false;
  std::vector<IssuedCall> collectives;
};

// Call number and index in group.
using Place = std::pair<uint64_t, uint16_t>;

Place PlaceOf(const IssuedCall& issued) {
  return {issued.call.call_number, issued.call.index_in_group};
}

// The fields in which ranks must be equal.
auto Shape(const IssuedCall& issued) {
  const CollectiveCall& call = issued.call;
  return std::tuple(call.collective, call.data_type, call.op, call.bytes, issued.root_or_peer);
}

std::string Describe(const IssuedCall& issued) {
  return fmt::format("{} of {} ({}, {})", Name(issued.call.collective), FormatBytes(issued.call.bytes),
                     Name(issued.call.data_type), Name(issued.call.op));
}

// Removes the calls before the last gap in the call numbers. If the rings of two threads replaced unequal
// numbers of records, the earliest calls are those of one thread alone; after the last gap none is missing.
void DropCallsBeforeLastGap(std::vector<IssuedCall>& calls) {
  const auto gap = std::adjacent_find(calls.rbegin(), calls.rend(), [](const auto& late, const auto& early) {
    return late.call.call_number > early.call.call_number + 1;
  });
  if (gap != calls.rend()) calls.erase(calls.begin(), std::next(gap).base());
}

// The sequences of all ranks, by the communicator's id.
std::map<uint64_t, std::vector<RankSequence>> SequencesByCommunicator(const Trace& trace) {
  std::map<uint64_t, std::vector<RankSequence>> all;
  for (const TraceSection& section : trace.sections) {
    const SectionCalls calls = CallsOf(section);
    std::map<uint32_t, RankSequence> own;
    for (const auto& [number, info] : calls.communicators) {
      own[number].rank = info.rank;
      own[number].may_end_early = !section.closed;
      own[number].may_begin_late = section.lost > 0;
      own[number].may_have_gaps = MayHaveGaps(section);
    }
    for (const TraceCall& call : calls.calls) {
      RankSequence& sequence = own[call.communicator];
      if (call.issued.call.collective < Collective::kSendRecv)
        sequence.collectives.push_back(call.issued);
      else if (IsPointToPoint(call.issued.call.collective))
        sequence.has_point_to_point = true;
    }
    for (auto& [number, sequence] : own) {
      std::stable_sort(sequence.collectives.begin(), sequence.collectives.end(),
                       [](const IssuedCall& a, const IssuedCall& b) { return PlaceOf(a) < PlaceOf(b); });
      if (sequence.may_have_gaps) DropCallsBeforeLastGap(sequence.collectives);
      all[calls.communicators.at(number).id].push_back(std::move(sequence));
    }
  }
  return all;
}

// Replaces each rank's call numbers by positions in its order of collectives. A rank that issued Send or Recv
// alone in some group counted a call number that others did not, so the numbers themselves cannot be
// compared.
void NumberByOrder(std::vector<RankSequence>& ranks) {
  for (RankSequence& rank : ranks) {
    for (size_t i = 0; i < rank.collectives.size(); ++i) {
      rank.collectives[i].call.call_number = i;
      rank.collectives[i].call.index_in_group = 0;
    }
  }
}

// The error for a call that `rank` did not issue.
Status Missing(uint64_t communicator, const RankSequence& rank, const RankSequence& other,
               const IssuedCall& call) {
  return MakeError(ErrorKind::kCorrupt,
                   "communicator {:#x}, call {}: rank {} issued {}, rank {} issued nothing", communicator,
                   call.call.call_number, other.rank, Describe(call), rank.rank);
}

// Compares two ranks' collectives by walking both sequences in step.
Status CompareRanks(uint64_t communicator, const RankSequence& a, const RankSequence& b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.collectives.size() || j < b.collectives.size()) {
    const IssuedCall* const left = i < a.collectives.size() ? &a.collectives[i] : nullptr;
    const IssuedCall* const right = j < b.collectives.size() ? &b.collectives[j] : nullptr;
    if (left != nullptr && right != nullptr && PlaceOf(*left) == PlaceOf(*right)) {
      if (Shape(*left) != Shape(*right)) {
        return MakeError(ErrorKind::kCorrupt,
                         "communicator {:#x}, call {}: rank {} issued {}, rank {} issued {}", communicator,
                         left->call.call_number, a.rank, Describe(*left), b.rank, Describe(*right));
      }
      ++i;
      ++j;
      continue;
    }
    const bool left_first = right == nullptr || (left != nullptr && PlaceOf(*left) < PlaceOf(*right));
    const RankSequence& without = left_first ? b : a;
    const bool at_end = (left_first ? right : left) == nullptr;
    const bool at_start = (left_first ? j : i) == 0;
    if (!(at_end && without.may_end_early) && !(at_start && without.may_begin_late)) {
      return Missing(communicator, without, left_first ? a : b, left_first ? *left : *right);
    }
    ++(left_first ? i : j);
  }
  return {};
}

// Imports of one rank are marked for mirroring. When all ranks are present, the mark is cleared.
void ClearMirroredIfComplete(Trace& trace) {
  const auto sections = static_cast<int32_t>(trace.sections.size());
  const bool complete = std::all_of(
      trace.sections.begin(), trace.sections.end(),
      [&](const TraceSection& section) { return section.world > 0 && section.world <= sections; });
  if (!complete) return;
  for (TraceSection& section : trace.sections) section.flags &= ~static_cast<uint32_t>(kTraceMirrored);
}

// The sections' information about one communicator.
struct Members {
  std::set<std::string> hosts;
  int described = 0;  // number of ranks that have a Communicator record
  bool told = false;  // a tuner on one of the ranks received the number of nodes from NCCL
};

bool Is(const TraceRecord& record, RecordKind kind) {
  return record.kind == static_cast<uint16_t>(kind);
}

// Adds the information of one section.
void Count(const TraceSection& section, std::map<uint64_t, Members>& communicators) {
  std::map<uint32_t, uint64_t> ids;
  for (const TraceRecord& record : section.records) {
    if (Is(record, RecordKind::kDecision)) {
      const auto id = ids.find(record.communicator);
      if (id != ids.end()) communicators[id->second].told = true;
    }
    if (!Is(record, RecordKind::kCommunicator)) continue;
    ids[record.communicator] = record.bytes;
    Members& members = communicators[record.bytes];
    members.hosts.insert(section.host);
    ++members.described;
    members.told |= CommunicatorOf(record).n_nodes != 1;
  }
}

// True if the number of hosts may be used as the number of nodes.
bool CountsAsNodes(const Members& members, const CommunicatorInfo& info) {
  return !members.told && members.described == info.n_ranks && members.hosts.size() > 1 &&
         !members.hosts.contains("");
}

}  // namespace

bool IsMergedBefore(const TraceSection& a, const TraceSection& b) {
  return std::tie(a.rank, a.host, a.process_id) < std::tie(b.rank, b.host, b.process_id);
}

bool MayHaveGaps(const TraceSection& section) {
  return section.lost > ((section.flags & kTraceImported) != 0 ? section.replaced : 0);
}

Result<Trace> MergeTraces(std::vector<Trace> traces) {
  Trace merged;
  for (Trace& trace : traces) {
    std::ranges::move(trace.sections, std::back_inserter(merged.sections));
    std::ranges::move(trace.damage, std::back_inserter(merged.damage));
  }
  std::ranges::stable_sort(merged.sections, IsMergedBefore);
  for (size_t i = 1; i < merged.sections.size(); ++i) {
    const int32_t rank = merged.sections[i].rank;
    if (rank >= 0 && rank == merged.sections[i - 1].rank) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "two traces of rank {}", rank),
          "merge the files of one run only; DYNAMICCL_TRACE=name.%r.ctrace gives each rank its own");
    }
  }
  ClearMirroredIfComplete(merged);
  CountNodesByHost(merged);
  return merged;
}

Status CheckRanksAgree(const Trace& trace) {
  for (auto& [communicator, ranks] : SequencesByCommunicator(trace)) {
    auto compared = ranks;
    if (std::ranges::any_of(ranks, &RankSequence::has_point_to_point)) {
      if (std::ranges::any_of(ranks, &RankSequence::may_begin_late)) continue;
      NumberByOrder(compared);
    }
    for (size_t i = 1; i < compared.size(); ++i) {
      DYNAMICCL_CHECK_OK(CompareRanks(communicator, compared[0], compared[i]));
    }
  }
  return {};
}

// One pass collects, for each communicator, the hosts of its ranks and whether a tuner was asked. A second
// pass writes the counts and seals the changed records.
void CountNodesByHost(Trace& trace) {
  std::map<uint64_t, Members> communicators;
  for (const TraceSection& section : trace.sections) Count(section, communicators);
  for (TraceSection& section : trace.sections) {
    for (TraceRecord& record : section.records) {
      if (!Is(record, RecordKind::kCommunicator)) continue;
      const Members& members = communicators.at(record.bytes);
      if (!CountsAsNodes(members, CommunicatorOf(record))) continue;
      record.index_in_group = static_cast<uint16_t>(members.hosts.size());
      Seal(record);
    }
  }
}

}  // namespace dynamiccl
