// SPDX-License-Identifier: Apache-2.0
// Number of rounds of a random test.
#pragma once

#include <algorithm>

namespace dynamiccl::testing {

#ifdef __SANITIZE_THREAD__
// The serial reference takes minutes under ThreadSanitizer, and faults show in the first rounds.
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
