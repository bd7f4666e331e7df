// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/nccl_variable.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

TEST(CtaPolicy, IsReadAsNcclReadsIt) {
  EXPECT_EQ(ParseCtaPolicy("ZERO"), 2);
  EXPECT_EQ(ParseCtaPolicy("zero"), 2);
  EXPECT_EQ(ParseCtaPolicy("2"), 2);
  EXPECT_EQ(ParseCtaPolicy("Efficiency|Zero"), 3);
  EXPECT_EQ(ParseCtaPolicy("DEFAULT"), 0);
  EXPECT_EQ(ParseCtaPolicy("0"), 0);
  EXPECT_EQ(ParseCtaPolicy("NONSENSE|zero"), 2);
}

TEST(CtaPolicy, WhatIsNotKnownLeavesItToTheProgram) {
  for (const char* text : {"", "ZEROS", "zer", "|", "x2", "-2"})
    EXPECT_EQ(ParseCtaPolicy(text), std::nullopt) << text;
}

}  // namespace
}  // namespace dynamiccl
