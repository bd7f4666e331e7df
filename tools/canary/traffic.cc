// SPDX-License-Identifier: Apache-2.0
// Calls are counted by size class, so that a job of many sizes is asked about in a dozen. One rank stands for
// all, because all ranks of a communicator issue the same collectives.
#include "tools/canary/traffic.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/collective/size_class.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

using CallsBySize = std::map<uint64_t, uint64_t>;  // by exact bytes

// The canary's calls are of whole floats on each rank (tests/real_nccl/driver/world.h).
uint64_t WholeFloats(uint64_t bytes, int ranks) {
  const uint64_t unit = sizeof(float) * static_cast<uint64_t>(ranks);
  return (bytes + unit - 1) / unit * unit;
}

bool HasChoice(const CollectiveCall& call) {
  return static_cast<int>(call.collective) < kTunableCollectives;
}

// The size of the communicators that carry most bytes; 0 without collectives.
int RanksWithMostBytes(const SectionCalls& section) {
  std::map<int, uint64_t> bytes;
  for (const TraceCall& call : section.calls) {
    if (HasChoice(call.issued.call)) bytes[call.issued.call.n_ranks] += call.issued.call.bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? 0 : most->first;
}

TrafficClass ClassOf(Collective collective, const CallsBySize& sizes, int ranks) {
  TrafficClass one{.collective = collective};
  uint64_t most = 0;
  for (const auto& [bytes, calls] : sizes) {
    one.calls += calls;
    one.all_bytes += bytes * calls;
    if (calls < most) continue;
    most = calls;
    one.bytes = WholeFloats(bytes, ranks);
  }
  return one;
}

// Counts the communicators that are not judged, by their size.
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

// Says that no call of the trace is among the ranks asked for, and what it has instead.
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

const CellChoice* ChoiceOf(const Cell& cell, const TrafficClass& one) {
  const auto found = std::find_if(cell.choices.begin(), cell.choices.end(), [&](const CellChoice& choice) {
    return choice.collective == one.collective && choice.bytes == one.bytes;
  });
  return found == cell.choices.end() ? nullptr : &*found;
}

// Microseconds by the table of `priced`; below 0: it has no price for the pair.
double CostOf(const CellChoice& priced, const CollectiveConfig& config) {
  const auto cost = priced.costs.find({config.algorithm, config.protocol});
  return cost == priced.costs.end() ? -1 : cost->second;
}

// One table's expected time of the job with each release's choices.
struct Expected {
  double with_before = 0;
  double with_after = 0;
  double ratio() const { return with_before > 0 ? with_after / with_before : 1; }
};

bool CanPrice(const CellChoice& table, const CellChoice& before, const CellChoice& after) {
  return CostOf(table, before.config) >= 0 && CostOf(table, after.config) >= 0;
}

void Add(const CellChoice& table, const CellChoice& before, const CellChoice& after, uint64_t calls,
         Expected& sum) {
  sum.with_before += static_cast<double>(calls) * CostOf(table, before.config);
  sum.with_after += static_cast<double>(calls) * CostOf(table, after.config);
}

}  // namespace

Result<Traffic> TrafficOf(const Trace& trace, int ranks) {
  const SectionCalls section = trace.sections.empty() ? SectionCalls{} : CallsOf(trace.sections.front());
  Traffic traffic{.ranks = ranks > 0 ? ranks : RanksWithMostBytes(section)};
  std::map<std::pair<Collective, SizeClass>, CallsBySize> sizes;
  for (const TraceCall& call : section.calls) {
    const CollectiveCall& issued = call.issued.call;
    if (!HasChoice(issued)) {
      ++traffic.calls_without_choice;
    } else if (issued.n_ranks == traffic.ranks) {
      ++sizes[{issued.collective, SizeClassOf(issued.bytes)}][issued.bytes];
    }
  }
  traffic.other_communicators = OthersOf(section, traffic.ranks);
  if (sizes.empty()) return NoneAmong(traffic);
  traffic.nodes = NodesOf(section, traffic.ranks);
  for (const auto& [key, found] : sizes) traffic.classes.push_back(ClassOf(key.first, found, traffic.ranks));
  std::stable_sort(traffic.classes.begin(), traffic.classes.end(),
                   [](const TrafficClass& a, const TrafficClass& b) { return a.all_bytes > b.all_bytes; });
  for (size_t i = 0; i < traffic.classes.size(); ++i)
    (i < kMostClasses ? traffic.calls : traffic.calls_left_out) += traffic.classes[i].calls;
  traffic.classes.resize(std::min(traffic.classes.size(), kMostClasses));
  return traffic;
}

std::vector<uint64_t> SizesOf(const Traffic& traffic) {
  std::vector<uint64_t> sizes;
  for (const TrafficClass& one : traffic.classes) sizes.push_back(one.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

TrafficEffect EffectOn(const Traffic& traffic, const Cell& before, const Cell& after) {
  TrafficEffect effect;
  Expected by_before, by_after;
  for (const TrafficClass& one : traffic.classes) {
    const CellChoice* const old = ChoiceOf(before, one);
    const CellChoice* const now = ChoiceOf(after, one);
    if (old == nullptr || now == nullptr || !CanPrice(*old, *old, *now) || !CanPrice(*now, *old, *now)) {
      effect.calls_unpriced += one.calls;
      continue;
    }
    effect.calls += one.calls;
    const bool same_pair =
        old->config.algorithm == now->config.algorithm && old->config.protocol == now->config.protocol;
    effect.calls_with_other_pair += same_pair ? 0 : one.calls;
    effect.calls_with_other_channels += same_pair && old->config != now->config ? one.calls : 0;
    Add(*old, *old, *now, one.calls, by_before);
    Add(*now, *old, *now, one.calls, by_after);
  }
  effect.by_before = by_before.ratio();
  effect.by_after = by_after.ratio();
  effect.own_us_before = by_before.with_before;
  effect.own_us_after = by_after.with_after;
  return effect;
}

bool Has(const Traffic& traffic, Collective collective, uint64_t bytes) {
  return std::any_of(traffic.classes.begin(), traffic.classes.end(), [&](const TrafficClass& one) {
    return one.collective == collective && one.bytes == bytes;
  });
}

}  // namespace dynamiccl
