// SPDX-License-Identifier: Apache-2.0
// Adds up the bytes of each size class.
#include "tools/demo/demo_steps.h"

#include <algorithm>

#include "traces/format/trace_calls.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

// Bytes of the first call in a size class, and of all calls in it.
struct ClassTraffic {
  uint64_t bytes_of_call = 0;
  uint64_t total = 0;
};
using Traffic = std::map<Collective, std::map<SizeClass, ClassTraffic>>;

void AddTraffic(const Trace& trace, Traffic& traffic) {
  if (trace.sections.empty()) return;
  for (const TraceCall& call : CallsOf(trace.sections.front()).calls) {
    const CollectiveCall& issued = call.issued.call;
    if (static_cast<int>(issued.collective) >= kTunableCollectives) continue;
    ClassTraffic& entry = traffic[issued.collective][SizeClassOf(issued.bytes)];
    if (entry.bytes_of_call == 0) entry.bytes_of_call = issued.bytes;
    entry.total += issued.bytes;
  }
}

std::map<SizeClass, uint64_t> MostTraffic(const std::map<SizeClass, ClassTraffic>& classes, size_t limit) {
  std::vector<std::pair<SizeClass, ClassTraffic>> ranked(classes.begin(), classes.end());
  const auto heavier = [](const auto& a, const auto& b) { return a.second.total > b.second.total; };
  // Keep the smallest and the largest class in any case: the agents interpolate between them.
  if (ranked.size() > 2) {
    std::swap(ranked[1], ranked.back());
    std::stable_sort(ranked.begin() + 2, ranked.end(), heavier);
  }
  ranked.resize(std::min(ranked.size(), std::max<size_t>(limit, 2)));
  std::map<SizeClass, uint64_t> kept;
  for (const auto& [size_class, entry] : ranked) kept[size_class] = entry.bytes_of_call;
  return kept;
}

}  // namespace

Result<ObservedSizes> ObserveSizes(const std::vector<std::string>& traces, size_t limit) {
  Traffic traffic;
  for (const std::string& path : traces) {
    DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
    AddTraffic(trace, traffic);
  }
  ObservedSizes sizes;
  for (const auto& [collective, classes] : traffic) sizes[collective] = MostTraffic(classes, limit);
  return sizes;
}

std::map<Collective, std::set<SizeClass>> HeldOutClasses(const ObservedSizes& sizes) {
  std::map<Collective, std::set<SizeClass>> held_out;
  for (const auto& [collective, classes] : sizes) {
    size_t position = 0;
    for (const auto& [size_class, bytes] : classes) {
      // A third of the size classes is held out, which means that the agents do not see their measurements:
      // those at positions 1, 4, 7 and so on.
      if (position % 3 == 1 && position + 1 < classes.size()) held_out[collective].insert(size_class);
      ++position;
    }
  }
  return held_out;
}

}  // namespace dynamiccl
