// SPDX-License-Identifier: Apache-2.0
// Replays measured repeats as the times of calls.
#include "studies/agents/baselines/called_key.h"

#include <cmath>

#include "src/base/statistics.h"

namespace dynamiccl::agents {
size_t CalledKey::ArmOf(const CollectiveConfig& config) const {
  size_t arm = 1;
  while (arm < arms() && !(Config(arm) == config)) ++arm;
  return arm;
}

double CalledKey::Call(size_t arm, bool probe) {
  const SweptConfig& swept = arm == 0 ? *key_.default_choice : key_.configs[arm - 1];
  microseconds_.push_back(swept.picks[random_() % swept.picks.size()]);
  probes_ += probe;
  return std::log2(double{1} * microseconds_.back());
}

void CalledKey::UseUpWith(size_t arm) {
  while (!over()) Call(arm, false);
}

double CalledKey::usual_microseconds() const {
  return Mean(key_.default_choice->picks);
}

ProbeCost CalledKey::cost() const {
  const size_t oracle = ArmOf(OracleChoice(key_));
  const double best = oracle == arms() ? usual_microseconds() : Mean(key_.configs[oracle - 1].picks);
  ProbeCost cost;
  cost.probes = probes_;
  cost.over_default = Mean(microseconds_) / usual_microseconds() - 1;
  cost.over_oracle = Mean(microseconds_) / best - 1;
  return cost;
}

}  // namespace dynamiccl::agents
