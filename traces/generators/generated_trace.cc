// SPDX-License-Identifier: Apache-2.0
// Every rank issues the same operations, so each section is written from the same lists. Sections differ only
// in which communicator a rank uses on each axis of the world, and in the rank's number in that communicator.
#include "traces/generators/generated_trace.h"

#include <map>
#include <set>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

// Nanoseconds between calls, so that the order is visible in every view of the trace.
constexpr int64_t kCallSpacingNs = 1'000'000;

// An id that is equal on all ranks and different for every communicator of the job.
uint64_t CommunicatorId(Axis axis, int group) {
  return (static_cast<uint64_t>(axis) + 1) << 32 | static_cast<uint32_t>(group);
}

// The axes on which the run has calls.
std::set<Axis> AxesOf(const GeneratedRun& run) {
  std::set<Axis> axes;
  const auto add = [&](const std::vector<WireOperation>& operations) {
    for (const WireOperation& operation : operations) axes.insert(operation.axis);
  };
  add(run.construction);
  for (const auto& step : run.steps) add(step);
  return axes;
}

// Number of nodes by communicator.
using NodeCounts = std::map<std::pair<Axis, int>, int>;

// Ranks fill nodes in order, `ranks_per_node` on each.
NodeCounts CountNodes(const GeneratedRun& run, const std::set<Axis>& axes, int ranks_per_node) {
  std::map<std::pair<Axis, int>, std::set<int>> nodes;
  for (int rank = 0; rank < run.world.Ranks(); ++rank) {
    const int node = ranks_per_node == 0 ? 0 : rank / ranks_per_node;
    for (const Axis axis : axes) nodes[{axis, run.world.GroupOn(axis, rank)}].insert(node);
  }
  NodeCounts counts;
  for (const auto& [communicator, known] : nodes) counts[communicator] = static_cast<int>(known.size());
  return counts;
}

// Writes the section of one rank.
class SectionWriter {
 public:
  SectionWriter(const GeneratedRun& run, int rank) : run_(run), rank_(rank) {
    section_.rank = rank;
    section_.world = run.world.Ranks();
    section_.process_id = rank + 1;
    section_.flags = kTraceImported | kTraceOrderOnly;
    section_.library = "generated";
    section_.writer = run.framework;
    section_.closed = true;
  }

  void AddCommunicator(Axis axis, int nodes) {
    const auto number = static_cast<uint32_t>(numbers_.size());
    numbers_[axis] = number;
    Add(CommunicatorRecord(number,
                           {CommunicatorId(axis, run_.world.GroupOn(axis, rank_)),
                            run_.world.RankOn(axis, rank_), run_.world.RanksOn(axis), nodes},
                           0));
  }
  void AddStep(uint64_t step) { Add(StepRecord({now_ns_, step, Phase::kUnknown, run_.stage})); }
  void AddCall(const WireOperation& operation);

  TraceSection Take() {
    section_.closed_at = {now_ns_, now_ns_};
    return std::move(section_);
  }

 private:
  void Add(TraceRecord record) {
    Seal(record);
    section_.records.push_back(record);
  }

  const GeneratedRun& run_;
  const int rank_;
  TraceSection section_;
  std::map<Axis, uint32_t> numbers_;       // this process' number of each communicator
  std::map<Axis, uint64_t> call_numbers_;  // call number of the next group
  int64_t now_ns_ = 0;
};

void SectionWriter::AddCall(const WireOperation& operation) {
  IssuedCall issued;
  issued.call.call_number = call_numbers_[operation.axis];
  issued.call.bytes = operation.Bytes();
  issued.call.collective = operation.collective;
  issued.call.data_type = operation.data_type;
  issued.call.op = operation.op;
  issued.call.index_in_group = operation.index_in_group;
  issued.call.group_size = operation.group_size;
  issued.root_or_peer = operation.root;
  issued.issued_ns = now_ns_ += kCallSpacingNs;
  // This is the coverage that a recorder without a tuner would write.
  const bool tunable = static_cast<int>(operation.collective) < kTunableCollectives;
  issued.coverage = tunable ? Coverage::kTunable : Coverage::kPointToPoint;
  issued.labelled_role = operation.role;
  issued.labelled_phase = operation.phase;
  issued.labelled_stage = run_.stage;
  if (operation.index_in_group + 1 == operation.group_size) ++call_numbers_[operation.axis];
  Add(CallRecord(numbers_.at(operation.axis), issued));
}

}  // namespace

Trace TraceOf(const GeneratedRun& run, int ranks_per_node) {
  const std::set<Axis> axes = AxesOf(run);
  const NodeCounts nodes = CountNodes(run, axes, ranks_per_node);
  Trace trace;
  for (int rank = 0; rank < run.world.Ranks(); ++rank) {
    SectionWriter section(run, rank);
    for (const Axis axis : axes)
      section.AddCommunicator(axis, nodes.at({axis, run.world.GroupOn(axis, rank)}));
    for (const WireOperation& operation : run.construction) section.AddCall(operation);
    for (size_t step = 0; step < run.steps.size(); ++step) {
      section.AddStep(step);
      for (const WireOperation& operation : run.steps[step]) section.AddCall(operation);
    }
    trace.sections.push_back(section.Take());
  }
  return trace;
}

}  // namespace dynamiccl
