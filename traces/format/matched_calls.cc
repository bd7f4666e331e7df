// SPDX-License-Identifier: Apache-2.0
// A map from (communicator id, call number, index in group), which are equal on all ranks, to the places of a
// collective.
#include "traces/format/matched_calls.h"

#include <map>
#include <tuple>

namespace dynamiccl {

std::vector<MatchedCall> MatchCalls(const std::vector<SectionCalls>& sections) {
  std::map<std::tuple<uint64_t, uint64_t, uint16_t>, std::vector<CallPlace>> places;
  for (size_t section = 0; section < sections.size(); ++section) {
    const std::vector<TraceCall>& calls = sections[section].calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      const CollectiveCall& call = calls[i].issued.call;
      if (call.collective >= Collective::kSendRecv) continue;
      auto& same = places[{call.communicator, call.call_number, call.index_in_group}];
      if (same.empty() || same.back().section != section) same.push_back({section, i});
    }
  }
  std::vector<MatchedCall> matched;
  matched.reserve(places.size());
  for (auto& [key, ranks] : places)
    matched.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(ranks)});
  return matched;
}

}  // namespace dynamiccl
