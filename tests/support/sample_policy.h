// SPDX-License-Identifier: Apache-2.0
// Makes policies for tests that need no training: valid files with known behaviour.
#pragma once

#include <memory>

#include "src/policy/policy.h"

namespace dynamiccl::test {

// Returns a policy with random weights in both agents, whose domain contains every context, and with its
// golden vectors.
std::unique_ptr<Policy> MakeRandomPolicy(uint64_t seed);

// Returns the same policy with random networks for effects on steps, whose domain contains every input. Its
// file has format version 3.
std::unique_ptr<Policy> MakeRandomPolicyWithEffects(uint64_t seed);

// Returns a policy that leaves every call to NCCL. It expects that steps take 2^`octaves` times as long if
// calls use this config, plus or minus 2^`error`, in all circumstances. It expects no change from other
// configs.
struct ExpectedOfConfig {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  ChannelCount channels = ChannelCount::kOne;
  double octaves = 0;
  double error = 0;
};
std::unique_ptr<Policy> MakePolicyThatExpects(const ExpectedOfConfig& expected);

// Returns a policy that promises 16 times NCCL's speed for this algorithm and protocol, with any number of
// channels and for every call, and nothing for others. It recognises nothing.
std::unique_ptr<Policy> MakePolicyThatPrefers(Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl::test
