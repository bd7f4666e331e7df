// SPDX-License-Identifier: Apache-2.0
// Seeds of random tests: every run of a build tests the same, and whoever wants other inputs asks for them.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace dynamiccl::test {

// `fixed`, or what DYNAMICCL_TEST_SEED says in its place: a number, or "random" for one that is drawn. The
// test prints the seed with its failures.
inline unsigned TestSeed(unsigned fixed) {
  const char* const asked = std::getenv("DYNAMICCL_TEST_SEED");
  if (asked == nullptr || *asked == '\0') return fixed;
  return std::string(asked) == "random" ? std::random_device()()
                                        : static_cast<unsigned>(std::strtoul(asked, nullptr, 10));
}

// The same of a test that goes through several.
inline std::vector<unsigned> TestSeeds(const std::vector<unsigned>& fixed) {
  const unsigned first = TestSeed(fixed.front());
  return first == fixed.front() ? fixed : std::vector<unsigned>{first};
}

}  // namespace dynamiccl::test
