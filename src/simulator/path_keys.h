// SPDX-License-Identifier: Apache-2.0
// The constants of a path under the names that they have in system files. Reader, writer and fit iterate over
// this table.
#pragma once

#include <string_view>

#include "src/simulator/system.h"

namespace dynamiccl {

// Describes one constant of a path.
struct PathKey {
  std::string_view name;
  double PathCosts::*value;
  bool required;  // constants that are not required are 0 where absent
};

// The order is that of the file and of the fit's parameters.
inline constexpr PathKey kPathKeys[] = {
    {"base_us", &PathCosts::base_us, true},           {"intra_hop_us", &PathCosts::intra_hop_us, true},
    {"inter_hop_us", &PathCosts::inter_hop_us, true}, {"intra_gbps", &PathCosts::intra_gbps, true},
    {"inter_gbps", &PathCosts::inter_gbps, false},    {"channel_gbps", &PathCosts::channel_gbps, false}};

// Largest value of any constant, in microseconds or GB/s. The least is 0; intra_gbps must be above it.
inline constexpr double kMaxPathValue = 1e9;
// The largest absolute value of Residual::log_factor: a residual may state a factor of at most exp of this.
inline constexpr double kMaxLogFactor = 20;
// The least width of an interval. A width that comes out narrower is stated as this one.
inline constexpr double kLeastWidth = 1e-9;

}  // namespace dynamiccl
