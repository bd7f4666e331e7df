// SPDX-License-Identifier: Apache-2.0
// A program that trains over a fabric, both drawn from one seed: which call comes when, which configs are
// fast, and what other jobs found. They are equal on all ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "src/collective/decision_key.h"
#include "src/decision/guard/guard.h"

namespace dynamiccl::testing {

// Returns an integer from a seed and up to three numbers. It is equal on every rank and at every time.
uint64_t NumberFrom(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0);

class SimulatedProgram {
 public:
  explicit SimulatedProgram(uint64_t seed);

  // Returns collective, bytes and number of the call. One in some hundred calls belongs to an evaluation.
  // From a certain call on, steps may be different. In some programs no step is like the one before.
  DecisionKey CallAt(uint64_t call) const;
  // Returns the role that a rank recognises from the bits of its structure.
  Role RoleOf(const DecisionKey& key, uint32_t structure) const;
  // Returns the policy's choice, which may be a bad config, or NCCL's own.
  CollectiveConfig PolicyChoice(const TableKey& key) const;
  std::vector<ProbeCandidate> Candidates(const TableKey& key) const;
  std::optional<CollectiveConfig> Confirmed(const TableKey& key) const;
  // Returns the effect on steps that findings of other places promise.
  std::optional<Expectation> Expected(const EffectQuestion& question) const;
  // Returns the nanoseconds that the call takes; some fabrics become slower in mid-run.
  int64_t TransferNs(const DecisionKey& key, const CollectiveConfig& config) const;
  // Returns the nanoseconds that the device computes before each call.
  int64_t computed_ns() const { return computed_ns_; }

 private:
  uint64_t seed_;
  uint64_t period_;       // calls of a step
  uint64_t changes_at_;   // call from which steps are others
  uint64_t slower_from_;  // call from which transfers take longer
  bool has_steps_;
  bool believes_;  // other places promise something
  int64_t computed_ns_;
};

}  // namespace dynamiccl::testing
