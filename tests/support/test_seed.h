// SPDX-License-Identifier: Apache-2.0
// Seeds of random tests. Every run of a build tests the same inputs, unless a user asks for others.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace dynamiccl::test {

// Returns `fixed`, or the value of DYNAMICCL_TEST_SEED: a number, or "random" for a random one. The test
// prints the seed with its failures.
inline unsigned TestSeed(unsigned fixed) {
  const char* const asked = std::getenv("DYNAMICCL_TEST_SEED");
  if (asked == nullptr || *asked == '\0') return fixed;
  return std::string(asked) == "random" ? std::random_device()()
                                        : static_cast<unsigned>(std::strtoul(asked, nullptr, 10));
}

// Does the same for a test that uses several seeds.
inline std::vector<unsigned> TestSeeds(const std::vector<unsigned>& fixed) {
  const unsigned first = TestSeed(fixed.front());
  return first == fixed.front() ? fixed : std::vector<unsigned>{first};
}

}  // namespace dynamiccl::test
