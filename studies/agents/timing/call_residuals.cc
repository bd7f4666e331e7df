// SPDX-License-Identifier: Apache-2.0
// References follow src/decision/guard/time_reference.h, with the shipped detector's least spreads.
#include "studies/agents/timing/call_residuals.h"

#include <cmath>

namespace dynamiccl::agents {
namespace {

// The least spread of transfers, in natural logarithms (2 %). As in the shipped detector, a smaller measured
// spread is not trusted.
constexpr double kLeastSpread = 0.02;
// The least spread of log(1 + skew / transfer).
constexpr double kLeastSkewSpread = 0.1;

}  // namespace

std::optional<CallResidual> CallResiduals::Take(const TimedCall& call) {
  Key& key = keys_[call.key];
  const auto transfer = key.transfer.Residual(std::log(call.transfer_ns), kLeastSpread, true);
  const auto skew = key.skew.Residual(std::log1p(call.skew_ns / call.transfer_ns), kLeastSkewSpread, true);
  if (!transfer || !skew) return std::nullopt;
  const CallResidual residual{*transfer, key.transfer.spread(), *skew, key.skew.spread()};
  key.transfer.Follow(*transfer, kLeastSpread);
  key.skew.Follow(*skew, kLeastSkewSpread);
  return residual;
}

}  // namespace dynamiccl::agents
