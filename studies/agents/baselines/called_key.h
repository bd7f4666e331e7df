// SPDX-License-Identifier: Apache-2.0
// A key that is called many times, as a job would call it. A call of a configuration takes the time of one of
// its measured repeats, chosen at random from the picking half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "agents/evaluation/regret.h"

namespace dynamiccl::agents {

// Number of calls of each key in all experiments with CalledKey.
inline constexpr int kProbingCalls = 200;

// The calls of one key, used by one baseline. Equal seeds give equal times.
class CalledKey {
 public:
  // `key` must have a measured default and must outlive the object.
  CalledKey(const SweptKey& key, uint64_t seed) : key_(key), random_(seed) {}

  // Arm 0 is the default, arm i + 1 is configuration i of the key.
  size_t arms() const { return key_.configs.size() + 1; }
  CollectiveConfig Config(size_t arm) const {
    return arm == 0 ? kLeaveNcclAlone : key_.configs[arm - 1].config;
  }
  // The arm of the configuration; arms() if the sweep did not measure it as a forced configuration.
  size_t ArmOf(const CollectiveConfig& config) const;
  // Returns the arm whose forced configuration equals the library's own choice.
  size_t DefaultsTwin() const { return ArmOf(key_.default_choice->config); }
  // Calls the arm once and returns log2 of its microseconds. `probe` marks a call that tries something.
  double Call(size_t arm, bool probe);
  // True once all calls are used up.
  bool over() const { return calls() >= kProbingCalls; }
  int calls() const { return static_cast<int>(microseconds_.size()); }
  // Spends the remaining calls on one arm.
  void UseUpWith(size_t arm);
  // The cost of the search, except for the worst window, which concerns many keys.
  ProbeCost cost() const;
  // The durations of all calls so far.
  const std::vector<float>& microseconds() const { return microseconds_; }
  // The mean of the default's repeats.
  double usual_microseconds() const;
  const SweptKey& key() const { return key_; }

 private:
  const SweptKey& key_;
  std::mt19937_64 random_;
  std::vector<float> microseconds_;
  int probes_ = 0;
};

}  // namespace dynamiccl::agents
