// SPDX-License-Identifier: Apache-2.0
// Random draws that give the same results on every machine for the same state of the engine. The
// distributions of <random> do not guarantee this.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace dynamiccl::agents {

// A whole number from `low` to `high`, both included. The modulus favours small numbers by less than 2^-40
// for the ranges used here.
inline int64_t Uniform(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// True in one of `one_in` cases.
inline bool Coin(std::mt19937_64& random, int one_in) {
  return random() % static_cast<uint64_t>(one_in) == 0;
}

// Returns 2^u, where u is uniform from `low` to `high` in steps of 1/16.
inline double LogUniform(std::mt19937_64& random, double low, double high) {
  return std::exp2(low +
                   static_cast<double>(Uniform(random, 0, static_cast<int64_t>((high - low) * 16))) / 16);
}

}  // namespace dynamiccl::agents
