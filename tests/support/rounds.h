// SPDX-License-Identifier: Apache-2.0
// How often a random test repeats.
#pragma once

#include <algorithm>

namespace dynamiccl::testing {

#ifdef __SANITIZE_THREAD__
// The serial reference takes minutes under it, and what it looks for shows in the first rounds.
inline constexpr int kFewerRounds = 8;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kFewerRounds = 3;
#else
inline constexpr int kFewerRounds = 1;
#endif

constexpr int Rounds(int plain) {
  return std::max(1, plain / kFewerRounds);
}

}  // namespace dynamiccl::testing
