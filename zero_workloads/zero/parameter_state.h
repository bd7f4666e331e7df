// SPDX-License-Identifier: Apache-2.0
// The life cycle of a unit's parameters in stage 3, as a table of legal transitions. Events in a wrong order
// thus cause an exception and not a wrong result.
#pragma once

namespace dynamiccl::zero {

// A state says how much of a unit's parameters is in this rank's memory, and why.
enum class ParameterState {
  // This rank has only its shard in memory.
  kPartitioned,
  // Memory is allocated, and the gather is under way.
  kGathering,
  // A forward or backward pass computes with the full parameters.
  kInUse,
  // The backward pass no longer needs the parameters, and the gradients wait for their bucket.
  kGradientReady,
  // The shards hold the values after the optimizer step.
  kUpdated,
};

// The state's name for messages, for example "in use".
const char* ParameterStateName(ParameterState state);

// The present state of one unit, which starts as partitioned. Stage3 owns one for each unit.
class ParameterLife {
 public:
  ParameterState state() const { return state_; }
  bool Is(ParameterState state) const { return state_ == state; }
  // Moves to the state `next`. If the table has no such transition, throws std::logic_error that names both
  // states, and the state stays.
  void MoveTo(ParameterState next);

 private:
  ParameterState state_ = ParameterState::kPartitioned;
};

}  // namespace dynamiccl::zero
