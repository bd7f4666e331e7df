// SPDX-License-Identifier: Apache-2.0
// Policies for tests that need no training: valid files with known behaviour.
#pragma once

#include <memory>

#include "src/policy/policy.h"

namespace dynamiccl::test {

// Random weights in both agents, every context inside the domain, golden vectors in order.
std::unique_ptr<Policy> MakeRandomPolicy(uint64_t seed);

// The same policy with random networks for effects on steps, every input inside their domain. Its file has
// format version 3.
std::unique_ptr<Policy> MakeRandomPolicyWithEffects(uint64_t seed);

// Leaves every call to NCCL, and expects that steps take 2^`octaves` times as long if calls use this config,
// give or take 2^`error`, whatever the circumstances. It expects no change of any other config.
struct ExpectedOfConfig {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  ChannelCount channels = ChannelCount::kOne;
  double octaves = 0;
  double error = 0;
};
std::unique_ptr<Policy> MakePolicyThatExpects(const ExpectedOfConfig& expected);

// Promises 16 times NCCL's speed for this algorithm and protocol, with any number of channels and for every
// call; nothing for any other. Recognises nothing.
std::unique_ptr<Policy> MakePolicyThatPrefers(Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl::test
