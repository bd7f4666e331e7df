// SPDX-License-Identifier: Apache-2.0
// The life cycle of a unit's parameters in stage 3 as a table of legal transitions.
#pragma once

namespace dynamiccl::zero {

enum class ParameterState {
  kPartitioned,    // only the shards exist
  kGathering,      // memory is there, the gather is under way
  kInUse,          // forward or backward computes with the full parameters
  kGradientReady,  // backward is done with them; the gradients wait for their bucket
  kUpdated,        // the shards hold the values after the optimizer step
};

const char* ParameterStateName(ParameterState state);

// A unit's present state; starts partitioned.
class ParameterLife {
 public:
  ParameterState state() const { return state_; }
  bool Is(ParameterState state) const { return state_ == state; }
  // Throws std::logic_error that names both states where the table has no such step.
  void MoveTo(ParameterState next);

 private:
  ParameterState state_ = ParameterState::kPartitioned;
};

}  // namespace dynamiccl::zero
