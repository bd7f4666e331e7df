// SPDX-License-Identifier: Apache-2.0
// Converts a trace into one program for each rank. A mirrored trace (the recording of one rank, used for all
// ranks) becomes one program that all ranks run.
#include "tools/simulate/trace_program.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace dynamiccl {
namespace {

// Largest number of ranks of a simulated job.
constexpr int32_t kMaxRanks = 1 << 20;

// True for a call that does not wait for the other ranks of its communicator: a send, a receive or a
// SendRecv.
bool WaitsForNobody(Collective collective) {
  return IsOneSided(collective) || collective == Collective::kSendRecv;
}

// Recorded end of a call in nanoseconds. A call without a recorded duration counts as never ending.
int64_t EndOf(const TraceCall& call) {
  return call.issued.duration_ns < 0 ? INT64_MAX : call.issued.issued_ns + call.issued.duration_ns;
}

// Writes one rank's program in the order of issue. JobOfTrace owns it on its stack.
class RankWriter {
 public:
  // `order_only`: the trace has only the order of the calls, since their times of issue were not measured.
  RankWriter(const ReplayPlan& plan, const std::vector<int>& nodes, SystemDemands& demands,
             const TraceJobOptions& options, bool order_only)
      : plan_(plan), nodes_(nodes), demands_(demands), options_(options), order_only_(order_only) {}

  Status Write();

  RankProgram program;
  std::vector<CollectiveLabel> labels;
  std::vector<CollectiveConfig> configs;
  uint64_t untimed = 0;

 private:
  Status Add(size_t communicator, const TraceCall& call, bool first);
  // Advances the time of the recording to `issued`, in nanoseconds. The rank waits for the calls that had
  // ended by then, and computes for the rest of the time.
  void Reach(int64_t issued);
  void Compute(int64_t ns) {
    if (ns > 0) program.actions.push_back({ActionKind::kCompute, ns});
  }

  const ReplayPlan& plan_;
  // Number of nodes of each communicator, indexed by the communicator.
  const std::vector<int>& nodes_;
  SystemDemands& demands_;
  const TraceJobOptions& options_;
  const bool order_only_;
  // The calls for which the program has not waited yet: (recorded end, number of the call).
  std::vector<std::pair<int64_t, int64_t>> open_;
  // Current time of the recording, in nanoseconds.
  int64_t now_ = INT64_MIN;
};

void RankWriter::Reach(int64_t issued) {
  if (now_ == INT64_MIN) now_ = issued;
  std::ranges::sort(open_);
  size_t ended = 0;
  for (; ended < open_.size() && open_[ended].first <= issued; ++ended) {
    program.actions.push_back({ActionKind::kWait, open_[ended].second});
    now_ = std::max(now_, open_[ended].first);
  }
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(ended));
  if (!order_only_) Compute(issued - now_);
  now_ = std::max(now_, issued);
}

Status RankWriter::Add(size_t communicator, const TraceCall& call, bool first) {
  const CollectiveCall& c = call.issued.call;
  const IssuedCall& issued = call.issued;
  // Rules treat a parameter gather in the backward phase as a role of its own.
  const bool backward =
      issued.labelled_role == Role::kParameterGather && issued.labelled_phase == Phase::kBackward;
  const CallOnSystem asked{c.collective,
                           c.bytes,
                           plan_.communicators[communicator].n_ranks,
                           nodes_[communicator],
                           backward ? Role::kBackwardGather : issued.labelled_role,
                           issued.labelled_phase,
                           issued.labelled_stage};
  const CollectiveConfig config = options_.config ? options_.config(asked) : kLeaveNcclAlone;
  DYNAMICCL_TRY(TransferDemand demand,
                demands_.Of(c.collective, c.bytes, config, asked.n_ranks, asked.n_nodes));
  // The calls of one group together pay the latency of one call.
  if (!first) demand.latency_ns = 0;
  const auto number = static_cast<int64_t>(program.collectives.size());
  program.collectives.push_back(
      {WaitsForNobody(c.collective) ? plan_.communicators.size() : communicator, demand});
  program.actions.push_back({ActionKind::kIssue, number});
  configs.push_back(config);
  labels.push_back({call.issued.labelled_role, c.collective, c.bytes});
  open_.emplace_back(EndOf(call), number);
  if (call.issued.duration_ns < 0) ++untimed;
  return {};
}

Status RankWriter::Write() {
  const auto groups = static_cast<int64_t>(plan_.groups.size());
  for (const ReplayGroup& group : plan_.groups) {
    if (order_only_) Compute(options_.compute_ns / groups);
    for (const TraceCall& call : group.calls) {
      if (options_.paced) Reach(call.issued.issued_ns);
      DYNAMICCL_CHECK_OK(Add(group.communicator, call, &call == &group.calls.front()));
    }
  }
  for (const auto& [end, number] : open_) program.actions.push_back({ActionKind::kWait, number});
  return {};
}

// Returns one layout (which ranks belong together) for each communicator of the plans, and one more in which
// every rank is alone, for sends and receives.
std::vector<CommunicatorLayout> LayoutsOf(const std::vector<ReplayPlan>& plans, int32_t ranks) {
  std::vector<CommunicatorLayout> layouts(plans[0].communicators.size() + 1);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i + 1 < layouts.size(); ++i) {
      const ReplayCommunicator& first = plans[0].communicators[i];
      const int32_t color = plans.size() == 1 ? MirroredCommunicator(first.id, first.n_ranks, rank).color
                                              : plans[static_cast<size_t>(rank)].communicators[i].color;
      layouts[i].communicator_of_rank.push_back(color);
    }
    layouts.back().communicator_of_rank.push_back(rank);
  }
  return layouts;
}

// Returns the calls that each rank issues, or those of one rank for a mirrored trace (the recording of one
// rank, used for all ranks).
Result<std::vector<ReplayPlan>> PlansOf(const Trace& trace, int32_t ranks, const TraceJobOptions& options) {
  const int32_t planned = trace.sections.size() == 1 ? 1 : ranks;
  std::vector<ReplayPlan> plans;
  for (int32_t rank = 0; rank < planned; ++rank) {
    DYNAMICCL_TRY(ReplayPlan plan, PlanReplay(trace, rank, ranks, options.window));
    plans.push_back(std::move(plan));
  }
  return plans;
}

// For each communicator layout, the number of nodes over which the communicator of this rank extends.
std::vector<int> NodesOf(const std::vector<CommunicatorLayout>& layouts, size_t rank, int ranks_per_node) {
  std::vector<int> counts;
  for (const CommunicatorLayout& layout : layouts) {
    std::set<size_t> nodes;
    for (size_t other = 0; other < layout.communicator_of_rank.size(); ++other)
      if (layout.communicator_of_rank[other] == layout.communicator_of_rank[rank])
        nodes.insert(other / static_cast<size_t>(ranks_per_node));
    counts.push_back(static_cast<int>(nodes.size()));
  }
  return counts;
}

}  // namespace

Result<TraceJob> JobOfTrace(const Trace& trace, const System& system, const TraceJobOptions& options) {
  TraceJob result;
  const int32_t ranks = options.ranks > 0 ? options.ranks : RecordedRanks(trace);
  if (ranks > kMaxRanks)
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "the trace is of {} ranks, more than {}", ranks, kMaxRanks),
        "say with -n how many to simulate");
  DYNAMICCL_TRY(result.plans, PlansOf(trace, ranks, options));
  result.order_only = trace.order_only();
  SystemDemands demands(system);
  SimulatedJob& job = result.job;
  job.n_ranks = ranks;
  job.ranks_per_node = system.ranks_per_node;
  job.port_gbps = PortGbps(system);
  job.network_gbps = NetworkGbps(system);
  job.layouts = LayoutsOf(result.plans, ranks);
  const bool mirrored = trace.sections.size() == 1;
  for (size_t rank = 0; rank < result.plans.size(); ++rank) {
    const std::vector<int> nodes = NodesOf(job.layouts, rank, system.ranks_per_node);
    RankWriter writer(result.plans[rank], nodes, demands, options, result.order_only);
    DYNAMICCL_CHECK_OK(writer.Write());
    if (!mirrored) job.program_of_rank.push_back(static_cast<uint32_t>(rank));
    job.programs.push_back(std::move(writer.program));
    result.labels.push_back(std::move(writer.labels));
    result.configs.push_back(std::move(writer.configs));
    result.untimed += writer.untimed;
  }
  return result;
}

SectionCalls SimulatedCalls(const ReplayPlan& plan, const RankTiming& timing) {
  SectionCalls section;
  for (const ReplayGroup& group : plan.groups) {
    for (const TraceCall& call : group.calls) {
      const CollectiveTiming& times = timing.collectives[section.calls.size()];
      section.calls.push_back(call);
      section.calls.back().issued.issued_ns = times.issued_ns;
      section.calls.back().issued.duration_ns = times.ended_ns - times.started_ns;
    }
  }
  std::ranges::stable_sort(section.calls, {}, [](const TraceCall& call) { return call.issued.issued_ns; });
  return section;
}

}  // namespace dynamiccl
