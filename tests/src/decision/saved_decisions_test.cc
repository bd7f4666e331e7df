// SPDX-License-Identifier: Apache-2.0
#include "src/decision/saved_decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

SavedDecisions RandomDecisions(uint32_t seed) {
  std::mt19937 random(seed);
  SavedDecisions decisions(seed % 2 == 0 ? std::string(64, 'a') : "");
  for (uint32_t i = 0; i < seed % 50; ++i) {
    SavedKey key;
    key.n_ranks = 1 + static_cast<int>(random() % 100);
    key.n_nodes = 1 + static_cast<int>(random() % 10);
    key.key = {static_cast<Collective>(random() % kTunableCollectives), SizeClassOf(random()),
               static_cast<Role>(random() % kRoles)};
    CollectiveConfig config = kLeaveNcclAlone;
    if (random() % 4 != 0)
      config = {static_cast<Algorithm>(random() % kAlgorithms), static_cast<Protocol>(random() % kProtocols),
                static_cast<uint8_t>(random() % 65)};
    decisions.Set(key, config);
  }
  return decisions;
}

std::string MessageOf(const std::string& text) {
  const auto read = SavedDecisions::Parse(text, "f");
  return read ? "" : read.error().message;
}

// Returns the text with a valid end line.
std::string Ended(const std::string& body) {
  return body + "end " + ToHex(Sha256Of(std::as_bytes(std::span(body)))) + "\n";
}

TEST(SavedDecisions, TextGivesThemBack) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const SavedDecisions decisions = RandomDecisions(seed);
    const auto read = SavedDecisions::Parse(decisions.Text(), "f");
    ASSERT_TRUE(read) << "seed " << seed << ": " << read.error().message;
    EXPECT_EQ(read->configs(), decisions.configs()) << "seed " << seed;
    EXPECT_EQ(read->policy_hash(), decisions.policy_hash());
    EXPECT_EQ(read->digest(), decisions.digest());
  }
}

TEST(SavedDecisions, EveryTruncationAndEveryFlippedBitIsNoticed) {
  const std::string text = RandomDecisions(8).Text();
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(SavedDecisions::Parse(text.substr(0, length), "f")) << length;
  for (size_t byte = 0; byte < text.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      EXPECT_FALSE(SavedDecisions::Parse(damaged, "f")) << byte << " " << bit;
    }
  }
}

TEST(SavedDecisions, WrongFilesAreToldApart) {
  const std::string head = "dynamiccl-decisions 1\npolicy none\n";
  EXPECT_THAT(MessageOf(""), HasSubstr("f:1: is not \"dynamiccl-decisions 1\""));
  EXPECT_THAT(MessageOf("dynamiccl-decisions 2\n"), HasSubstr("f:1:"));
  EXPECT_THAT(MessageOf("dynamiccl-decisions 10\n"), HasSubstr("f:1:"));
  EXPECT_THAT(MessageOf(head), HasSubstr("the end line is missing"));
  EXPECT_THAT(MessageOf(head + "end 00\n"), HasSubstr("checksum"));
  EXPECT_THAT(MessageOf(Ended("dynamiccl-decisions 1\npolicy no\n")), HasSubstr("f:2:"));
  EXPECT_THAT(MessageOf(Ended("dynamiccl-decisions 1\n")), HasSubstr("f:2:"));
  EXPECT_THAT(MessageOf(Ended(head + "2 1 AllReduce 1024 unknown\n")), HasSubstr("f:3: 5 columns"));
  EXPECT_THAT(MessageOf(Ended(head + "0 1 AllReduce 1024 unknown -\n")), HasSubstr("numbers from 1"));
  EXPECT_THAT(MessageOf(Ended(head + "2 1 Send 1024 unknown -\n")), HasSubstr("'Send'"));
  EXPECT_THAT(MessageOf(Ended(head + "2 1 AllReduce 1025 unknown -\n")), HasSubstr("no size class begins"));
  EXPECT_THAT(MessageOf(Ended(head + "2 1 AllReduce 1024 some -\n")), HasSubstr("'some' is no role"));
  for (const char* config :
       {"Ring/LL", "Ring/LL/256", "Ring/LL/-1", "Ring/LL/4/4", "Rung/LL/4", "", "Undefined/LL/4"})
    EXPECT_THAT(MessageOf(Ended(head + "2 1 AllReduce 1024 unknown " + config + "\n")),
                HasSubstr("is no configuration"))
        << config;
  const std::string line = "2 1 AllReduce 1024 unknown Ring/LL/4\n";
  EXPECT_EQ(MessageOf(Ended(head + line)), "");
  EXPECT_THAT(MessageOf(Ended(head + line + line)), HasSubstr("f:4: the same key"));
}

TEST(SavedDecisions, WhatIsNotSavedIsNcclsChoice) {
  SavedDecisions decisions;
  const SavedKey key{2, 1, {Collective::kAllReduce, SizeClassOf(1024), Role::kUnknown}};
  decisions.Set(key, {Algorithm::kRing, Protocol::kLL, 4});
  EXPECT_EQ(decisions.Find(key).channels, 4);
  SavedKey other = key;
  other.n_nodes = 2;
  EXPECT_TRUE(decisions.Find(other).leaves_nccl_alone());
  other = key;
  other.key.role = Role::kScalar;
  EXPECT_TRUE(decisions.Find(other).leaves_nccl_alone());
}

}  // namespace
}  // namespace dynamiccl
