// SPDX-License-Identifier: Apache-2.0
#include "agents/integer_reference.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/policy/policy_checks.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::agents {
namespace {

TEST(IntegerReference, AgreesWithThePolicysInferenceBitForBit) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    // src/policy computed the golden outputs of this policy.
    const auto policy =
        seed % 2 == 0 ? test::MakeRandomPolicy(seed) : test::MakeRandomPolicyWithEffects(seed);
    const auto reference = std::make_unique<Policy>(*policy);
    FillGoldenOutputs(reference->tensors);
    EXPECT_EQ(std::memcmp(&reference->tensors, &policy->tensors, sizeof(PolicyTensors)), 0)
        << "seed " << seed;
  }
}

TEST(IntegerReference, SeesTheSmallestChangeOfAWeight) {
  const auto policy = test::MakeRandomPolicy(9);
  policy->tensors.config_weights_3[1][5] += 1;
  FillGoldenOutputs(policy->tensors);
  EXPECT_EQ(FindGoldenMismatch(policy->tensors).kind, 0u);
  policy->tensors.config_weights_3[1][5] += 4;
  EXPECT_NE(FindGoldenMismatch(policy->tensors).kind, 0u);
}

}  // namespace
}  // namespace dynamiccl::agents
