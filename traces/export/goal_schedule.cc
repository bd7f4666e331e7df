// SPDX-License-Identifier: Apache-2.0
// Format: the text form of GOAL (Hoefler et al., LogGOPSim, HPDC 2010) that its txt2bin reads. Each rank has
// operations with labels, and lines that state which operation requires which other one:
//     rank 0 {
//     l1: send 1024b to 1 tag 0
//     l2: recv 1024b from 1 tag 0
//     l3: calc 5000
//     l3 requires l1
//     }
// An AllReduce is 2 (n-1) steps of a ring, AllGather and ReduceScatter n-1 steps, Broadcast and Reduce a
// chain.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/export/trace_export.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// The ranks of one communicator, and the number that tags its messages. Each rank inside the communicator
// maps to the rank in the job.
struct Members {
  int tag = 0;
  std::map<int32_t, size_t> ranks;  // rank in the communicator -> index of its section
};
using MembersById = std::map<uint64_t, Members>;

// Finds all ranks of each communicator; a missing one is an error.
Result<MembersById> MembersOf(const std::vector<SectionCalls>& sections) {
  MembersById all;
  std::map<uint64_t, int32_t> sizes;
  for (size_t section = 0; section < sections.size(); ++section) {
    for (const auto& [number, info] : sections[section].communicators) {
      all[info.id].ranks[info.rank] = section;
      sizes[info.id] = info.n_ranks;
    }
  }
  int tag = 0;
  for (auto& [id, members] : all) {
    members.tag = tag++;
    const auto found = static_cast<int32_t>(members.ranks.size());
    const bool in_order = members.ranks.begin()->first == 0 && members.ranks.rbegin()->first == found - 1;
    if (found == sizes[id] && in_order) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "the trace has {} of the {} ranks of communicator {:#x}: a schedule needs all",
                              found, sizes[id], id),
                    "give the traces of all ranks");
  }
  return all;
}

// The operations of one rank.
class RankSchedule {
 public:
  // `timed`: whether the times of issue were measured.
  RankSchedule(const MembersById& members, bool timed) : members_(members), timed_(timed) {}

  // Adds a call as sends and receives.
  void Add(const TraceCall& call) {
    AddCalculation(call.issued.issued_ns);
    const CollectiveCall& c = call.issued.call;
    communicator_ = &members_.at(c.communicator);
    own_ = call.issued.rank;
    of_ = static_cast<int32_t>(communicator_->ranks.size());
    const int32_t root = std::max(call.issued.root_or_peer, 0) % of_;
    Begin(c);
    switch (c.collective) {
      case Collective::kAllReduce:
        return Ring(Share(c.bytes), 2 * (of_ - 1));
      case Collective::kAllGather:
      case Collective::kReduceScatter:
        return Ring(Share(c.bytes), of_ - 1);
      case Collective::kBroadcast:
        return Chain(c.bytes, (own_ - root + of_) % of_);
      case Collective::kReduce:
        return Chain(c.bytes, (own_ - root - 1 + of_) % of_);
      case Collective::kSendRecv:
      case Collective::kAllToAll:
      case Collective::kScatter:
      case Collective::kGather:
        return AllToAll(Share(c.bytes));
      case Collective::kSend:
        return lane_->ends.push_back(Send(c.bytes, root));
      case Collective::kRecv:
        return lane_->ends.push_back(Receive(c.bytes, root));
    }
  }

  const std::string& text() const { return text_; }

 private:
  // Adds a computation that lasts as long as the host took between two issues, if these times were measured.
  // The computation waits for the computation before it, but not for calls. The next call waits for this
  // computation.
  void AddCalculation(int64_t issued_ns) {
    if (timed_ && issues_ > 0 && issued_ns > last_issue_ns_) {
      const std::string label = Operation(fmt::format("calc {}", issued_ns - last_issue_ns_));
      if (!calculation_.empty()) Requires(label, calculation_);
      calculation_ = label;
    }
    ++issues_;
    last_issue_ns_ = issued_ns;
  }

  // Sets the operations for which the first operations of the next call wait. All sends and receives between
  // two collectives run at the same time, as in a group. If they ran one after the other, ranks could wait
  // for each other forever.
  void Begin(const CollectiveCall& call) {
    lane_ = &lanes_[call.communicator];
    const bool one_sided = IsOneSided(call.collective);
    if (!one_sided || !lane_->one_sided || lane_->call_number != call.call_number) {
      lane_->before = lane_->ends;
      if (!calculation_.empty()) lane_->before.push_back(calculation_);
      if (one_sided) lane_->ends.clear();
    }
    lane_->one_sided = one_sided;
    lane_->call_number = call.call_number;
  }

  // One rank's part of the bytes, rounded up.
  uint64_t Share(uint64_t bytes) const {
    return (bytes + static_cast<uint64_t>(of_) - 1) / static_cast<uint64_t>(of_);
  }

  // In each step a rank sends a share to the next rank and receives one from the rank before. The send of a
  // step waits for the receive of the step before.
  void Ring(uint64_t bytes, int32_t steps) {
    for (int32_t step = 0; step < steps; ++step) Next({Send(bytes, own_ + 1), Receive(bytes, own_ - 1)});
  }

  // Passes the data from the rank at place 0 to the rank at the last place. A Broadcast begins at the root, a
  // Reduce ends at the root.
  void Chain(uint64_t bytes, int32_t place) {
    if (place > 0) Next({Receive(bytes, own_ - 1)});
    if (place + 1 < of_) Next({Send(bytes, own_ + 1)});
  }

  // Sends a share to every other rank and receives one from each, all at the same time.
  void AllToAll(uint64_t bytes) {
    std::vector<std::string> ends;
    for (int32_t step = 1; step < of_; ++step) {
      ends.push_back(Send(bytes, own_ + step));
      ends.push_back(Receive(bytes, own_ - step));
    }
    if (!ends.empty()) Next(std::move(ends));
  }

  // Makes the next operations on this communicator wait for the operations with these labels.
  void Next(std::vector<std::string> labels) { lane_->before = lane_->ends = std::move(labels); }

  std::string Send(uint64_t bytes, int32_t to) {
    return Message(fmt::format("send {}b to {} tag {}", bytes, JobRank(to), communicator_->tag));
  }
  std::string Receive(uint64_t bytes, int32_t from) {
    return Message(fmt::format("recv {}b from {} tag {}", bytes, JobRank(from), communicator_->tag));
  }
  // Adds an operation that waits for those in the lane's `before`; returns its label.
  std::string Message(const std::string& what) {
    const std::string label = Operation(what);
    for (const std::string& before : lane_->before) Requires(label, before);
    return label;
  }

  // Returns the rank in the job that has the place `inside` on the communicator's ring.
  size_t JobRank(int32_t inside) const { return communicator_->ranks.at((inside % of_ + of_) % of_); }

  std::string Operation(const std::string& what) {
    std::string label = fmt::format("l{}", ++labels_);
    text_ += fmt::format("{}: {}\n", label, what);
    return label;
  }
  void Requires(const std::string& label, const std::string& before) {
    text_ += fmt::format("{} requires {}\n", label, before);
  }

  // The operations that this rank has on one communicator so far.
  struct Lane {
    std::vector<std::string> ends;    // labels of the last operations
    std::vector<std::string> before;  // labels that the next operations require
    uint64_t call_number = 0;
    bool one_sided = false;
  };

  const MembersById& members_;
  const bool timed_;
  std::string text_;
  uint64_t labels_ = 0;
  uint64_t issues_ = 0;
  int64_t last_issue_ns_ = 0;
  std::string calculation_;  // label of the last calculation
  std::map<uint64_t, Lane> lanes_;
  // The next four members belong to the call that is being added: this rank inside the communicator, the
  // number of ranks, the communicator and its lane.
  int32_t own_ = 0;
  int32_t of_ = 1;
  const Members* communicator_ = nullptr;
  Lane* lane_ = nullptr;
};

// A send or receive without a peer cannot be scheduled.
bool HasPeer(const TraceCall& call) {
  return !IsOneSided(call.issued.call.collective) || call.issued.root_or_peer >= 0;
}

}  // namespace

Result<Exported> ExportGoal(const Trace& trace) {
  std::vector<SectionCalls> sections;
  for (const TraceSection& section : trace.sections) sections.push_back(CallsOf(section));
  DYNAMICCL_TRY(const MembersById members, MembersOf(sections));
  uint64_t without_peer = 0;
  std::string text = fmt::format("num_ranks {}\n", sections.size());
  for (size_t rank = 0; rank < sections.size(); ++rank) {
    RankSchedule schedule(members, !trace.sections[rank].order_only());
    for (const TraceCall& call : sections[rank].calls) {
      if (HasPeer(call))
        schedule.Add(call);
      else
        ++without_peer;
    }
    text += fmt::format("\nrank {} {{\n{}}}\n", rank, schedule.text());
  }
  Exported exported{{{"", std::move(text)}}, {}};
  if (trace.order_only()) exported.notes.emplace_back(kNoComputing);
  if (without_peer > 0)
    exported.notes.push_back(fmt::format("{} sends and receives left out: no peer", without_peer));
  return exported;
}

}  // namespace dynamiccl
