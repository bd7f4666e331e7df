// SPDX-License-Identifier: Apache-2.0
// A plan has one of two sources: the only section of a trace, mirrored, or the section of this rank. Both
// give the communicators to create and the calls; the window then leaves out the same calls on all ranks.
#include "traces/replay/replay_plan.h"

#include <algorithm>
#include <map>

#include "src/base/counted.h"

namespace dynamiccl {
namespace {

// For each communicator id, the ranks of the job in it with their ranks inside: id -> rank of the job -> rank
// inside.
using Membership = std::map<uint64_t, std::map<int32_t, int32_t>>;

// The communicators and calls from which a rank's plan is made.
struct Source {
  SectionCalls calls;  // calls of the section that this rank repeats
  std::vector<ReplayCommunicator> communicators;
  std::vector<std::string> notes;
};

// A group of unknown size cannot be repeated: as a group of one rank it would exchange nothing.
Status CheckSizeIsKnown(const TraceSection& section, const CommunicatorInfo& info, int32_t world) {
  if (!section.groups_unknown() || info.n_ranks > 1 || world == 1) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "the {} file of this trace does not state how many ranks communicator {:#x} has",
                            section.writer, info.id),
                  "import it again with `dynamiccl trace import --group-size N`");
}

// Every rank repeats the only section.
Result<Source> MirroredSource(const Trace& trace, const std::vector<SectionCalls>& sections, int32_t rank,
                              int32_t world) {
  Source source{sections[0], {}, {"recorded on one rank: every rank issues its calls"}};
  for (const auto& [number, info] : source.calls.communicators) {
    DYNAMICCL_CHECK_OK(CheckSizeIsKnown(trace.sections[0], info, world));
    // A communicator as large as the recorded job, or larger than the replay's job, becomes the whole job.
    const bool whole = info.n_ranks >= world || info.n_ranks == trace.sections[0].world;
    const int32_t size = whole ? world : info.n_ranks;
    source.communicators.push_back(MirroredCommunicator(info.id, size, rank));
    if (size != info.n_ranks) {
      source.notes.push_back(
          fmt::format("a communicator of {} ranks has {} here; total bytes are kept", info.n_ranks, size));
    }
    if (world % size != 0) {
      return MakeError(ErrorKind::kInvalidArgument, "{} ranks do not divide into communicators of {}", world,
                       size);
    }
  }
  return source;
}

// Each rank repeats its own section, and every rank of each communicator must be in the trace.
Result<Source> RecordedSource(const Trace& trace, const std::vector<SectionCalls>& sections, int32_t rank,
                              int32_t world) {
  const auto recorded = static_cast<int32_t>(sections.size());
  if (recorded != world) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "a trace of {} ranks cannot be replayed on {}",
                              recorded, world),
                    fmt::format("use -n {}", recorded));
  }
  Membership members;
  std::map<uint64_t, int32_t> sizes;
  Source source;
  for (int32_t other = 0; other < world; ++other) {
    for (const auto& [number, info] : sections[static_cast<size_t>(other)].communicators) {
      DYNAMICCL_CHECK_OK(CheckSizeIsKnown(trace.sections[static_cast<size_t>(other)], info, world));
      members[info.id][other] = info.rank;
      sizes[info.id] = info.n_ranks;
    }
  }
  source.calls = sections[static_cast<size_t>(rank)];
  for (const auto& [id, ranks] : members) {
    if (static_cast<int32_t>(ranks.size()) != sizes[id]) {
      return MakeError(ErrorKind::kInvalidArgument, "the trace has {} of the {} ranks of communicator {:#x}",
                       ranks.size(), sizes[id], id);
    }
    const auto own = ranks.find(rank);
    const bool member = own != ranks.end();
    source.communicators.push_back({id, sizes[id], member ? 0 : -1, member ? own->second : 0});
  }
  return source;
}

// False for calls without elements. Also false for sends and receives of a mirrored trace, because it has
// their peers for the recorded rank only.
bool Replayable(const TraceCall& call, bool mirrored, int32_t n_ranks) {
  const CollectiveCall& c = call.issued.call;
  return !(mirrored && IsOneSided(c.collective)) && CountArgument(c, n_ranks) > 0;
}

// Appends the call to the last group of the plan if both have the same communicator and call number; else
// begins a new group.
void AppendCall(ReplayPlan& plan, size_t communicator, const TraceCall& call) {
  const bool same_group =
      !plan.groups.empty() && plan.groups.back().communicator == communicator &&
      plan.groups.back().calls.back().issued.call.call_number == call.issued.call.call_number;
  if (!same_group) plan.groups.push_back({communicator, {}});
  plan.groups.back().calls.push_back(call);
}

}  // namespace

ReplayCommunicator MirroredCommunicator(uint64_t id, int32_t n_ranks, int32_t rank) {
  return {id, n_ranks, rank / n_ranks, rank % n_ranks};
}

int32_t RecordedRanks(const Trace& trace) {
  if (trace.sections.size() != 1) return std::max<int32_t>(2, static_cast<int32_t>(trace.sections.size()));
  int32_t ranks = std::max(2, trace.sections[0].world);
  for (const auto& [number, info] : CallsOf(trace.sections[0]).communicators)
    ranks = std::max(ranks, info.n_ranks);
  return ranks;
}

int32_t ReplayRanks(const Trace& trace, int32_t asked) {
  return asked > 0 ? asked : std::max<int32_t>(2, static_cast<int32_t>(trace.sections.size()));
}

Result<ReplayPlan> PlanReplay(const Trace& trace, int32_t rank, int32_t world, const ReplayWindow& window) {
  if (trace.sections.empty())
    return MakeError(ErrorKind::kInvalidArgument, "an empty trace has nothing to replay");
  std::vector<SectionCalls> sections;
  for (const TraceSection& section : trace.sections) sections.push_back(CallsOf(section));
  const bool mirrored = sections.size() == 1;
  DYNAMICCL_TRY(Source source, mirrored ? MirroredSource(trace, sections, rank, world)
                                        : RecordedSource(trace, sections, rank, world));
  const WindowedCalls windowed(trace, sections, window);
  ReplayPlan plan{std::move(source.communicators), {}, std::move(source.notes)};
  std::map<uint64_t, size_t> index;
  for (size_t i = 0; i < plan.communicators.size(); ++i) index[plan.communicators[i].id] = i;
  uint64_t left_out = 0;
  for (const TraceCall& call : source.calls.calls) {
    if (!windowed.Holds(call)) continue;
    const size_t communicator = index.at(call.issued.call.communicator);
    if (Replayable(call, mirrored, plan.communicators[communicator].n_ranks))
      AppendCall(plan, communicator, call);
    else
      ++left_out;
  }
  if (left_out > 0)
    plan.notes.push_back(
        fmt::format("{} left out: without bytes, or Send and Recv of one rank", Counted(left_out, "call")));
  return plan;
}

uint64_t CountArgument(const CollectiveCall& call, int32_t n_ranks) {
  const size_t element = ElementBytes(call.data_type);
  if (element == 0) return 0;
  const bool per_rank = call.collective == Collective::kAllGather ||
                        call.collective == Collective::kReduceScatter || IsExchange(call.collective);
  return call.bytes / element / (per_rank ? static_cast<uint64_t>(n_ranks) : 1);
}

uint64_t OperationHash(const ReplayPlan& plan) {
  SectionCalls calls;
  for (const ReplayGroup& group : plan.groups) {
    calls.calls.insert(calls.calls.end(), group.calls.begin(), group.calls.end());
  }
  return OperationHash(calls);
}

}  // namespace dynamiccl
