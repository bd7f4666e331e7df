// SPDX-License-Identifier: Apache-2.0
// Calls are sorted by time and distributed to sections by rank. On each communicator the calls of a group are
// collected until a call of another group comes.
#include "traces/import/profiled_process.h"

#include <algorithm>
#include <set>

namespace dynamiccl {
namespace {

// True if some communicator has calls of two ranks.
bool ShowsSeveralRanks(const std::vector<ProfiledCall>& calls) {
  std::map<uint64_t, int32_t> first;
  return std::any_of(calls.begin(), calls.end(), [&](const ProfiledCall& call) {
    return first.try_emplace(call.communicator, call.rank).first->second != call.rank;
  });
}

// Builds one section from the calls of one rank, in order of issue.
class SectionOfRank {
 public:
  SectionOfRank(const ProfiledProcess& process, uint32_t flags)
      : process_(process), section_(process.writer, flags) {}

  void Take(const ProfiledCall& call) {
    const auto [place, is_new] = groups_.try_emplace(call.communicator);
    Group& group = place->second;
    if (is_new) group.communicator = Announce(call);
    if (group.number != call.group || call.group == 0) Flush(group);
    group.number = call.group;
    group.calls.push_back(call.call);
  }

  TraceSection Finish() {
    for (auto& [id, group] : groups_) Flush(group);
    TraceSection section = section_.Finish();
    section.rank = rank_;
    section.world = world_;
    section.host = process_.host;
    section.process_id = process_.process_id;
    if (process_.wall_clock) {
      section.opened.realtime_ns = section.opened.monotonic_ns;
      section.closed_at.realtime_ns = section.closed_at.monotonic_ns;
    }
    return section;
  }
  size_t communicators() const { return section_.communicators(); }

 private:
  // Calls of the latest group of a communicator, which may be incomplete.
  struct Group {
    uint32_t communicator = 0;  // its number in the section
    uint64_t number = 0;        // ProfiledCall::group
    std::vector<ImportedCall> calls;
  };

  // Writes the communicator before its first call, and returns its number. The rank in the largest
  // communicator becomes the section's rank.
  uint32_t Announce(const ProfiledCall& call) {
    const ProfiledCommunicator& told = process_.communicators.at(call.communicator);
    const CommunicatorInfo info{call.communicator, call.rank, std::max(told.n_ranks, 1),
                                std::max(told.n_nodes, 1)};
    if (info.n_ranks > world_) {
      world_ = info.n_ranks;
      rank_ = call.rank;
    }
    return section_.Communicator(std::to_string(call.communicator), info, call.call.issued.issued_ns);
  }

  // Appends the collected group.
  void Flush(Group& group) {
    if (!group.calls.empty()) section_.AppendGroup(group.communicator, group.calls);
    group.calls.clear();
  }

  const ProfiledProcess& process_;
  RankSection section_;
  std::map<uint64_t, Group> groups_;  // by the communicator's id
  int32_t rank_ = -1;
  int32_t world_ = 0;
};

// Builds the result and lists the fields that the file does not contain.
Imported WithNotes(ProfiledProcess process, Trace trace, size_t communicators) {
  Imported imported;
  const uint64_t calls = process.calls.size();
  for (const char* field : {"role", "stage"}) imported.unfilled.push_back({field, calls, "unknown"});
  imported.unfilled.push_back({"reduction operator", calls, "sum"});
  imported.unfilled.push_back({"rank in the job", communicators, "the rank in the largest communicator"});
  for (auto& [field, row] : process.unfilled) imported.unfilled.push_back(std::move(row));
  imported.notes = std::move(process.notes);
  if (trace.sections.size() == 1)
    imported.notes.emplace_back("one rank only: replay issues its calls on every rank");
  else
    imported.notes.emplace_back("a process of several GPUs: each rank has a section of its own");
  imported.trace = std::move(trace);
  return imported;
}

}  // namespace

Imported TraceOfProfiledProcess(ProfiledProcess process) {
  SortOnce(process.calls, [](const ProfiledCall& a, const ProfiledCall& b) {
    return a.call.issued.issued_ns < b.call.issued.issued_ns;
  });
  const bool several = ShowsSeveralRanks(process.calls);
  const uint32_t flags = (several ? 0u : kTraceMirrored) | (process.order_only ? kTraceOrderOnly : 0u);
  std::map<int32_t, SectionOfRank> sections;
  for (const ProfiledCall& call : process.calls) {
    const auto place = sections.try_emplace(several ? call.rank : 0, process, flags);
    place.first->second.Take(call);
  }
  Trace trace;
  size_t communicators = 0;
  for (auto& [rank, section] : sections) {
    communicators += section.communicators();
    trace.sections.push_back(section.Finish());
  }
  if (!trace.sections.empty()) trace.sections.front().lost = process.lost;
  return WithNotes(std::move(process), std::move(trace), communicators);
}

}  // namespace dynamiccl
