// SPDX-License-Identifier: Apache-2.0
// A training program and its fabric, both drawn from one seed: the order of calls, the fast configs, and what
// other jobs found. They are equal on all ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "src/collective/decision_key.h"
#include "src/decision/guard/guard.h"

namespace dynamiccl::testing {

// Returns an integer that depends only on the seed and on up to three numbers.
uint64_t NumberFrom(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0);

class SimulatedProgram {
 public:
  explicit SimulatedProgram(uint64_t seed);

  // Returns the collective, bytes and number of the call. About one call in 300 belongs to an evaluation. In
  // some programs the steps have other calls from a certain call on, and in some no step is like the one
  // before.
  DecisionKey CallAt(uint64_t call) const;
  // Returns the role that a rank recognises from the bits of its structure.
  Role RoleOf(const DecisionKey& key, uint32_t structure) const;
  // Returns the policy's choice, which may be a bad config, or NCCL's own.
  CollectiveConfig PolicyChoice(const TableKey& key) const;
  std::vector<ProbeCandidate> Candidates(const TableKey& key) const;
  std::optional<CollectiveConfig> Confirmed(const TableKey& key) const;
  // Returns the effect on steps that findings in other places predict.
  std::optional<Expectation> Expected(const EffectQuestion& question) const;
  // Returns the nanoseconds that the call takes. Some fabrics become slower in the middle of the run.
  int64_t TransferNs(const DecisionKey& key, const CollectiveConfig& config) const;
  // Returns the nanoseconds that the device computes before each call.
  int64_t computed_ns() const { return computed_ns_; }

 private:
  uint64_t seed_;
  uint64_t period_;       // number of calls in a step
  uint64_t changes_at_;   // first call of steps with other calls
  uint64_t slower_from_;  // first call that takes longer
  bool has_steps_;
  bool believes_;  // there are findings in other places
  int64_t computed_ns_;
};

}  // namespace dynamiccl::testing
