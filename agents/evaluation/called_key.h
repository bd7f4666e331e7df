// SPDX-License-Identifier: Apache-2.0
// A key that is called many times, as a job would: a call of a config takes one of its measured repeats of
// the picking half at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "agents/evaluation/regret.h"

namespace dynamiccl::agents {

inline constexpr int kProbingCalls = 200;  // of each key

class CalledKey {
 public:
  // `key` has a measured default and must outlive this.
  CalledKey(const SweptKey& key, uint64_t seed) : key_(key), random_(seed) {}

  // Arm 0 is the default, arm i + 1 the key's config i.
  size_t arms() const { return key_.configs.size() + 1; }
  CollectiveConfig Config(size_t arm) const {
    return arm == 0 ? kLeaveNcclAlone : key_.configs[arm - 1].config;
  }
  // arms() where the config was not measured forced.
  size_t ArmOf(const CollectiveConfig& config) const;
  // The arm of the config that the default is.
  size_t DefaultsTwin() const { return ArmOf(key_.default_choice->config); }
  // log2 of the microseconds that this call took. `probe`: the call tried something.
  double Call(size_t arm, bool probe);
  bool over() const { return calls() >= kProbingCalls; }
  int calls() const { return static_cast<int>(microseconds_.size()); }
  void UseUpWith(size_t arm);
  // All but the worst window, which is one of many keys.
  ProbeCost cost() const;
  const std::vector<float>& microseconds() const { return microseconds_; }  // of each call
  double usual_microseconds() const;                                        // the default's mean
  const SweptKey& key() const { return key_; }

 private:
  const SweptKey& key_;
  std::mt19937_64 random_;
  std::vector<float> microseconds_;
  int probes_ = 0;
};

}  // namespace dynamiccl::agents
