// SPDX-License-Identifier: Apache-2.0
#include "tests/src/cost_model/nccl_agreement.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/src/cost_model/nccl_choice.h"

namespace dynamiccl {
namespace {

constexpr double kCostTolerance = 0.01;

void CompareCosts(const CostTable& modelled, const NcclCalls& calls, const NcclCall& call,
                  const std::string& where, Agreement* agreement) {
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const NcclPair pair{static_cast<Algorithm>(a), static_cast<Protocol>(p)};
      const float cost = modelled.at(pair.first, pair.second);
      const float real = calls.Cost(call, pair);
      if (cost < 0 && std::isnan(real)) continue;
      const bool offered_by_both = cost >= 0 && !std::isnan(real);
      agreement->Count(&agreement->costs, offered_by_both && std::abs(cost - real) <= kCostTolerance * real,
                       fmt::format("{} cost of {}/{}", where, Name(pair.first), Name(pair.second)));
    }
  }
}

}  // namespace

void CompareCall(const NcclCommunicatorFacts& facts, Collective collective, const NcclCalls& calls,
                 const NcclCall& call, bool has_table, const std::string& where, Agreement* agreement) {
  if (has_table) CompareCosts(NcclCosts(facts, collective, call.bytes), calls, call, where, agreement);
  const NcclOwnChoice own = NcclChoice(facts, collective, call.bytes);
  const bool right =
      own.config.algorithm == call.choice.algorithm && own.config.protocol == call.choice.protocol;
  agreement->Count(&agreement->choices, right, where + " choice");
  if (!right) return;
  agreement->Count(&agreement->channels, own.config.channels == call.choice.channels, where + " channels");
  if (call.threads != 0)
    agreement->Count(&agreement->threads, own.threads == call.threads, where + " threads");
}

void Print(const std::string& what, const Agreement& agreement) {
  std::printf(
      "%s: %.2f %% of %d costs, %.2f %% of %d choices, %.2f %% of their channels, %.2f %% of threads\n",
      what.c_str(), agreement.costs.percent(), agreement.costs.all, agreement.choices.percent(),
      agreement.choices.all, agreement.channels.percent(), agreement.threads.percent());
  for (const auto& [miss, count] : agreement.misses) std::printf("  %s: %d differ\n", miss.c_str(), count);
}

}  // namespace dynamiccl
