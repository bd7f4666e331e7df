// SPDX-License-Identifier: Apache-2.0
// Sizes of the structure LSTM, and the order of its outputs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/role.h"
#include "src/fingerprint/call_token.h"

namespace dynamiccl {

// Number of units of the LSTM.
inline constexpr int kStructureHidden = 32;
inline constexpr int kGateRows = 4 * kStructureHidden;
inline constexpr int kGateColumns = kTokenFeatures + kStructureHidden;

// Classes of the heads (output layers). There is no class for "unknown", which is the answer if the margin is
// too small.
inline constexpr int kRoleClasses = kLabelledRoles - 1;  // class i is Role i + 1
inline constexpr int kPhaseClasses = kPhases - 1;        // class i is Phase i + 1
inline constexpr int kStageClasses = kZeroStages - 1;    // class i is ZeroStage i

inline constexpr int kNextCollectiveClasses = kTunableCollectives + 1;  // the last class: anything else
inline constexpr int kNextSizeClasses = 24;                             // octaves, see NextSizeClass

// Rows of the heads: the role of the next call under each tunable collective; then the phase; then the stage;
// then the next collective, and its size.
inline constexpr int kRoleRows = kTunableCollectives * kRoleClasses;
inline constexpr int kPhaseRow = kRoleRows;
inline constexpr int kStageRow = kPhaseRow + kPhaseClasses;
inline constexpr int kNextCollectiveRow = kStageRow + kStageClasses;
inline constexpr int kNextSizeRow = kNextCollectiveRow + kNextCollectiveClasses;
inline constexpr int kHeadRows = kNextSizeRow + kNextSizeClasses;

// Returns the class of a collective in the head for the next collective.
constexpr int NextCollectiveClass(Collective collective) {
  const auto index = static_cast<int>(collective);
  return index < kTunableCollectives ? index : kTunableCollectives;
}
// Returns the class of a size: octaves from 256 bytes to 2 GiB. Smaller and larger sizes belong to the first
// and the last.
constexpr int NextSizeClass(uint64_t bytes) {
  constexpr int kFirstOctave = 8;
  return std::clamp(static_cast<int>(std::bit_width(bytes)) - 1 - kFirstOctave, 0, kNextSizeClasses - 1);
}

// The tables hold sigmoid and tanh over [-8, 8) in steps of 1/128. Entry i is the value at (i - 1024) / 128.
// Outside of this range the first or the last entry is used.
inline constexpr int kTableEntries = 2048;
inline constexpr int kTableFractionBits = 7;
inline constexpr int kGateOneBits = 15;  // fraction bits of the sigmoid's values

}  // namespace dynamiccl
