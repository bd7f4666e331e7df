// SPDX-License-Identifier: Apache-2.0
// The table of legal transitions of a unit's parameters in stage 3.
#include "zero_workloads/zero/parameter_state.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace dynamiccl::zero {
namespace {

using enum ParameterState;

// A permitted step from one state to another.
struct Transition {
  ParameterState from;
  ParameterState to;
};

// Every transition that a correct pass makes. Any other one is an error of the engine or of the order in
// which the module calls it.
constexpr Transition kLegal[] = {
    {kPartitioned, kGathering},      // before forward, and again before backward
    {kGathering, kInUse},            // the gather is done
    {kInUse, kPartitioned},          // discarded after forward
    {kInUse, kGradientReady},        // backward has every gradient of the unit
    {kGradientReady, kPartitioned},  // discarded, gradients are in a bucket
    {kPartitioned, kUpdated},        // the optimizer wrote the shard
    {kUpdated, kGathering},          // first use after the step
    {kUpdated, kUpdated},            // no pass of this step used the unit
};

}  // namespace

const char* ParameterStateName(ParameterState state) {
  switch (state) {
    case kPartitioned:
      return "partitioned";
    case kGathering:
      return "gathering";
    case kInUse:
      return "in use";
    case kGradientReady:
      return "gradient ready";
    case kUpdated:
      return "updated";
  }
  return "unknown";
}

void ParameterLife::MoveTo(ParameterState next) {
  const bool legal = std::any_of(std::begin(kLegal), std::end(kLegal), [&](const Transition& step) {
    return step.from == state_ && step.to == next;
  });
  if (!legal) {
    throw std::logic_error(std::string("parameters cannot go from ") + ParameterStateName(state_) + " to " +
                           ParameterStateName(next));
  }
  state_ = next;
}

}  // namespace dynamiccl::zero
