// SPDX-License-Identifier: Apache-2.0
// Sorts the records of a trace section by communicator and rank.
#include "tools/hang/job_calls.h"

#include <algorithm>
#include <tuple>

#include "traces/format/section_clock.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

auto PlaceOf(const JobCall& call) {
  return std::tuple(call.call.call_number, call.call.index_in_group);
}

JobCall CallOf(const TraceCall& issued, const SectionClock& clock, uint64_t order) {
  JobCall call;
  call.call = issued.issued.call;
  call.root_or_peer = issued.issued.root_or_peer;
  call.issued_ns = clock.RealTime(issued.issued.issued_ns);
  call.order = order;
  call.decided = issued.decision.has_value();
  if (call.decided) call.decision = issued.decision->config;
  return call;
}

bool IsTransfer(Collective collective) {
  return collective == Collective::kSend || collective == Collective::kRecv;
}

// Adds one section to a job. JobCalls::Add owns it on its stack and calls Run once.
class SectionTaker {
 public:
  SectionTaker(const TraceSection& section, const TransferCounts* left_out, JobCalls& job)
      : section_(section), left_out_(left_out), clock_(section), calls_(CallsOf(section)), job_(job) {}

  void Run() {
    process_ = job_.processes.size();
    job_.processes.push_back({section_.rank,
                              section_.process_id,
                              section_.host,
                              section_.library,
                              section_.closed,
                              section_.end(),
                              0,
                              {},
                              false,
                              false,
                              {}});
    if (!section_.records.empty())
      process().last_seen_ns = clock_.RealTime(section_.records.back().issued_ns);
    for (const auto& [number, info] : calls_.communicators) AddMember(number, info);
    if (left_out_ != nullptr) AddEarlierTransfers();
    for (size_t i = 0; i < calls_.calls.size(); ++i) AddCall(calls_.calls[i], i);
    for (const InsideView& inside : calls_.inside) AddInside(inside);
    for (const TraceRecord& record : section_.records) NoteEnd(record);
    for (const auto& [number, member] : members_) Settle(*member);
  }

 private:
  JobProcess& process() { return job_.processes[process_]; }

  void AddMember(uint32_t number, const CommunicatorInfo& info) {
    JobCommunicator& communicator = job_.communicators[info.id];
    communicator.n_ranks = std::max(communicator.n_ranks, info.n_ranks);
    JobMember& member = communicator.members[info.rank];
    member.process = process_;
    member.complete = section_.lost == 0;
    member.has_all_transfers = member.complete || left_out_ != nullptr;
    members_[number] = &member;
  }

  void AddEarlierTransfers() {
    for (const auto& [key, count] : *left_out_) {
      const auto& [number, direction, peer] = key;
      const auto found = members_.find(number);
      if (found != members_.end()) found->second->earlier[{direction, peer}] = count;
    }
  }

  void AddCall(const TraceCall& issued, uint64_t order) {
    JobMember& member = *members_.at(issued.communicator);
    const bool transfer = IsTransfer(issued.issued.call.collective);
    (transfer ? member.transfers : member.collectives).push_back(CallOf(issued, clock_, order));
  }

  // Adds a call, or the creation of a communicator, that had not returned when the trace was read.
  void AddInside(const InsideView& inside) {
    if (inside.init) {
      AddInit(inside);
      return;
    }
    const auto found = members_.find(inside.communicator);
    if (found == members_.end()) return;
    const CommunicatorInfo& info = calls_.communicators.at(inside.communicator);
    process().inside = info.id;
    JobCall call;
    call.call = inside.call;
    call.call.communicator = info.id;
    call.call.n_ranks = info.n_ranks;
    call.root_or_peer = inside.root_or_peer;
    call.issued_ns = clock_.RealTime(inside.since_ns);
    call.order = calls_.calls.size();
    call.returned = false;
    AddDecision(inside.communicator, call);
    JobMember& member = *found->second;
    (IsTransfer(call.call.collective) ? member.transfers : member.collectives).push_back(call);
  }

  // Finds the tuner's answer for a call that is not recorded yet: NCCL asks the tuner inside the library,
  // before the call returns and is recorded.
  void AddDecision(uint32_t communicator, JobCall& call) const {
    for (auto record = section_.records.rbegin(); record != section_.records.rend(); ++record) {
      if (record->kind != static_cast<uint16_t>(RecordKind::kDecision) ||
          record->communicator != communicator || record->call_number != call.call.call_number ||
          record->index_in_group != call.call.index_in_group)
        continue;
      call.decision = DecisionOf(*record).config;
      call.decided = true;
      return;
    }
  }

  void AddInit(const InsideView& inside) {
    process().inside = inside.created.id;
    process().inside_init = true;
    JobCommunicator& communicator = job_.communicators[inside.created.id];
    communicator.n_ranks = std::max(communicator.n_ranks, inside.created.n_ranks);
    communicator.inits.push_back(
        {process_, inside.created.rank, inside.created.n_ranks, clock_.RealTime(inside.since_ns)});
  }

  void NoteEnd(const TraceRecord& record) {
    if (record.kind != static_cast<uint16_t>(RecordKind::kCommunicatorEnd)) return;
    const auto found = members_.find(record.communicator);
    if (found != members_.end()) found->second->ended = true;
  }

  // Sorts the calls by number: threads of one process may record their calls in another order than NCCL
  // numbered them.
  static void Settle(JobMember& member) {
    std::vector<JobCall>& calls = member.collectives;
    std::stable_sort(calls.begin(), calls.end(),
                     [](const JobCall& a, const JobCall& b) { return PlaceOf(a) < PlaceOf(b); });
    member.next = calls.empty() ? 0 : calls.back().call.call_number + 1;
  }

  const TraceSection& section_;
  const TransferCounts* left_out_;
  SectionClock clock_;
  SectionCalls calls_;
  JobCalls& job_;
  size_t process_ = 0;
  // This process's entries of communicators. The key is the number by which this section of the trace names
  // the communicator.
  std::map<uint32_t, JobMember*> members_;
};

}  // namespace

const JobCall* JobMember::At(uint64_t call_number, uint16_t index) const {
  const auto found =
      std::lower_bound(collectives.begin(), collectives.end(), std::tuple(call_number, index),
                       [](const JobCall& call, const auto& place) { return PlaceOf(call) < place; });
  const bool is_it = found != collectives.end() && PlaceOf(*found) == std::tuple(call_number, index);
  return is_it ? &*found : nullptr;
}

void JobCalls::Add(const TraceSection& section, const TransferCounts* left_out) {
  world = std::max(world, section.world);
  SectionTaker(section, left_out, *this).Run();
}

}  // namespace dynamiccl
