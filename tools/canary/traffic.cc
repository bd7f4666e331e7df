// SPDX-License-Identifier: Apache-2.0
// Counts a job's calls by size class, so that the canary has to run at most a dozen sizes. One rank stands
// for all, because all ranks of a communicator issue the same collectives.
#include "tools/canary/traffic.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/base/statistics.h"
#include "src/collective/size_class.h"
#include "tools/report/exposed_shares.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// Calls of one collective and size class.
struct FoundCalls {
  std::map<uint64_t, uint64_t> by_size;  // by exact bytes
  uint64_t timed = 0, with_waits = 0;
  double recorded_ns = 0, waited_ns = 0;
};

// Rounds up to whole floats on each rank: the canary's driver sends floats (tests/real_nccl/driver/world.h).
uint64_t WholeFloats(uint64_t bytes, int ranks) {
  const uint64_t unit = sizeof(float) * static_cast<uint64_t>(ranks);
  return (bytes + unit - 1) / unit * unit;
}

bool HasChoice(const CollectiveCall& call) {
  return static_cast<int>(call.collective) < kTunableCollectives;
}

// Returns the number of ranks of the communicators that carry the most bytes; 0 without collectives.
int RanksWithMostBytes(const SectionCalls& section) {
  std::map<int, uint64_t> bytes;
  for (const TraceCall& call : section.calls) {
    if (HasChoice(call.issued.call)) bytes[call.issued.call.n_ranks] += call.issued.call.bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? 0 : most->first;
}

TrafficClass ClassOf(Collective collective, const FoundCalls& found, int ranks) {
  TrafficClass one{.collective = collective};
  uint64_t most = 0;
  for (const auto& [bytes, calls] : found.by_size) {
    one.calls += calls;
    one.all_bytes += bytes * calls;
    if (calls < most) continue;
    most = calls;
    one.bytes = WholeFloats(bytes, ranks);
  }
  if (found.timed == one.calls) one.recorded_ns = found.recorded_ns;
  one.waited_ns = found.waited_ns;
  one.knows_waits = found.with_waits == one.calls;
  return one;
}

void Count(const TraceCall& call, const ExposedShares& shares, FoundCalls* found) {
  ++found->by_size[call.issued.call.bytes];
  if (call.issued.duration_ns < 0) return;
  ++found->timed;
  found->recorded_ns += static_cast<double>(call.issued.duration_ns);
  const std::optional<double> share = shares.Of(call);
  found->with_waits += share ? 1 : 0;
  found->waited_ns += share.value_or(0) * static_cast<double>(call.issued.duration_ns);
}

// Counts the marked steps. Where the trace has times, also takes the median time of a step.
void TakeSteps(const SectionCalls& section, bool order_only, Traffic* traffic) {
  std::map<uint64_t, int64_t> begins;  // by step
  for (const StepView& mark : section.steps) begins.try_emplace(mark.step, mark.marked_ns);
  traffic->steps = begins.size();
  std::vector<double> times;
  for (auto step = begins.begin(), next = step; step != begins.end(); step = next) {
    if (++next != begins.end()) times.push_back(static_cast<double>(next->second - step->second));
  }
  if (!order_only && !times.empty()) traffic->step_ns = Median(times);
}

// Describes the communicators with another number of ranks than `ranks`, which are not judged.
std::vector<std::string> OthersOf(const SectionCalls& section, int ranks) {
  struct Other {
    std::set<uint32_t> communicators;
    uint64_t calls = 0;
  };
  std::map<int, Other> others;  // by number of ranks
  for (const TraceCall& call : section.calls) {
    if (call.issued.call.n_ranks == ranks || !HasChoice(call.issued.call)) continue;
    Other& other = others[call.issued.call.n_ranks];
    other.communicators.insert(call.communicator);
    ++other.calls;
  }
  std::vector<std::string> texts;
  for (const auto& [size, other] : others)
    texts.push_back(fmt::format("{} of {} ranks, {} calls", other.communicators.size(), size, other.calls));
  return texts;
}

// Returns an error that says that the trace has no collective on communicators of the wanted size, and which
// sizes it has.
tl::unexpected<Error> NoneAmong(const Traffic& traffic) {
  const std::string what = fmt::format("no collectives among {} ranks in the trace", traffic.ranks);
  if (traffic.other_communicators.empty())
    return MakeError(ErrorKind::kInvalidArgument, "{}: it has none at all", what);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}; its communicators: {}", what,
                            fmt::join(traffic.other_communicators, "; ")),
                  "leave out --world and --ranks: then the ranks are those that the trace has");
}

int NodesOf(const SectionCalls& section, int ranks) {
  int nodes = 1;
  for (const auto& [number, info] : section.communicators) {
    if (info.n_ranks == ranks) nodes = std::max(nodes, static_cast<int>(info.n_nodes));
  }
  return nodes;
}

}  // namespace

Result<Traffic> TrafficOf(const Trace& trace, int ranks) {
  const SectionCalls section = trace.sections.empty() ? SectionCalls{} : CallsOf(trace.sections.front());
  Traffic traffic{.ranks = ranks > 0 ? ranks : RanksWithMostBytes(section)};
  const ExposedShares shares(section.waited_shares);
  std::map<std::pair<Collective, SizeClass>, FoundCalls> sizes;
  for (const TraceCall& call : section.calls) {
    const CollectiveCall& issued = call.issued.call;
    if (!HasChoice(issued)) {
      ++traffic.calls_without_choice;
    } else if (issued.n_ranks == traffic.ranks) {
      Count(call, shares, &sizes[{issued.collective, SizeClassOf(issued.bytes)}]);
    }
  }
  traffic.other_communicators = OthersOf(section, traffic.ranks);
  if (sizes.empty()) return NoneAmong(traffic);
  traffic.nodes = NodesOf(section, traffic.ranks);
  TakeSteps(section, trace.sections.front().order_only(), &traffic);
  for (const auto& [key, found] : sizes) traffic.classes.push_back(ClassOf(key.first, found, traffic.ranks));
  std::stable_sort(traffic.classes.begin(), traffic.classes.end(),
                   [](const TrafficClass& a, const TrafficClass& b) { return a.all_bytes > b.all_bytes; });
  for (size_t i = 0; i < traffic.classes.size(); ++i)
    (i < kMaxClasses ? traffic.calls : traffic.calls_left_out) += traffic.classes[i].calls;
  traffic.classes.resize(std::min(traffic.classes.size(), kMaxClasses));
  return traffic;
}

std::vector<uint64_t> SizesOf(const Traffic& traffic) {
  std::vector<uint64_t> sizes;
  for (const TrafficClass& one : traffic.classes) sizes.push_back(one.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace dynamiccl
