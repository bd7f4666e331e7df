// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "src/hostccl/call_choice.h"

namespace dynamiccl::hostccl {
namespace {

ConfigMask Mask(std::initializer_list<std::pair<Algorithm, Protocol>> pairs) {
  ConfigMask mask;
  for (const auto& [algorithm, protocol] : pairs) mask.set(ConfigIndex(algorithm, protocol));
  return mask;
}

ConfigMask Selects(std::string_view text, Collective collective = Collective::kAllReduce) {
  const auto selection = ParseAlgorithmSelection(text, collective);
  EXPECT_TRUE(selection.has_value()) << text;
  return selection ? selection->configs : ConfigMask();
}

const auto kRingAll = Mask({{Algorithm::kRing, Protocol::kLL},
                            {Algorithm::kRing, Protocol::kLL128},
                            {Algorithm::kRing, Protocol::kSimple}});

TEST(AlgorithmSelection, TagsArePrefixesInAnyCase) {
  EXPECT_EQ(Selects("RING"), kRingAll);
  EXPECT_EQ(Selects("ring_simple"), Mask({{Algorithm::kRing, Protocol::kSimple}}));
  EXPECT_EQ(Selects("RING_LL"),
            Mask({{Algorithm::kRing, Protocol::kLL}, {Algorithm::kRing, Protocol::kLL128}}));
  EXPECT_EQ(Selects("NVLS"),
            Mask({{Algorithm::kNvls, Protocol::kSimple}, {Algorithm::kNvlsTree, Protocol::kSimple}}));
}

TEST(AlgorithmSelection, TermsAndFactors) {
  EXPECT_EQ(Selects("RING_LL+^RING_LL128"), Mask({{Algorithm::kRing, Protocol::kLL}}));
  EXPECT_EQ(Selects("TREE_LL128, PAT"), Mask({{Algorithm::kTree, Protocol::kLL128}}))
      << "AllReduce has no PAT";
  EXPECT_EQ(Selects(" RING_SIMPLE ,\tTREE_SIMPLE"),
            Mask({{Algorithm::kRing, Protocol::kSimple}, {Algorithm::kTree, Protocol::kSimple}}));
  EXPECT_EQ(Selects("^TREE+^NVLS+^COLLNET"), kRingAll);
  EXPECT_EQ(Selects("PAT", Collective::kAllGather), Mask({{Algorithm::kPat, Protocol::kSimple}}));
  EXPECT_TRUE(Selects("").none());
}

TEST(AlgorithmSelection, SymmetricKernelsAreKnownNames) {
  const auto selection = ParseAlgorithmSelection("SYMK_LL", Collective::kAllGather);
  ASSERT_TRUE(selection.has_value());
  EXPECT_TRUE(selection->symmetric);
  EXPECT_TRUE(selection->configs.none());
  EXPECT_FALSE(ParseAlgorithmSelection("SYMK_LL", Collective::kAllReduce)->symmetric);
}

TEST(AlgorithmSelection, WhatDoesNotParse) {
  for (const char* text : {"BUTTERFLY", "RING_SIMPLEX", "^", "RING,^", "RING+TREE", "RING,+,TREE", "+"}) {
    EXPECT_FALSE(ParseAlgorithmSelection(text, Collective::kAllReduce).has_value()) << text;
  }
}

}  // namespace
}  // namespace dynamiccl::hostccl
