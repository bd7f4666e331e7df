// SPDX-License-Identifier: Apache-2.0
#include "traces/format/nccl_choices_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

namespace dynamiccl {
namespace {

using testing::HasSubstr;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// Returns a number of at most six digits, which text keeps exactly.
float AnyCost(std::mt19937_64& random) {
  return random() % 7 == 0 ? kNone : static_cast<float>(random() % 1000000) / 1000;
}

NcclCalls AnyCalls(std::mt19937_64& random) {
  NcclCalls calls;
  calls.pairs = {{Algorithm::kTree, Protocol::kLL}, {Algorithm::kNvlsTree, Protocol::kSimple}};
  uint64_t bytes = 1 + random() % 100;
  for (uint64_t call = 0; call <= random() % 5; ++call, bytes += 1 + random() % 1000) {
    NcclCall one{
        .bytes = bytes,
        .choice = {static_cast<Algorithm>(random() % kAlgorithms),
                   static_cast<Protocol>(random() % kProtocols), static_cast<uint8_t>(random() % 65)},
        .threads = static_cast<int>(random() % 1025)};
    for (size_t pair = 0; pair < calls.pairs.size(); ++pair) one.microseconds.push_back(AnyCost(random));
    calls.calls.push_back(one);
  }
  return calls;
}

NcclCommunicator AnyCommunicator(std::mt19937_64& random) {
  NcclCommunicator communicator{.channels = static_cast<int>(1 + random() % 64),
                                .nvls_channels = static_cast<int>(1 + random() % 64)};
  communicator.graphs[Algorithm::kRing] = {4, 12, 30.5, 24, 0.25, "NVL", "PIX", true};
  if (random() % 2 == 0) communicator.graphs[Algorithm::kNvls] = {5, 8, 40, 60, 0, "NVL", "PXN", false};
  for (NcclCalls& calls : communicator.collectives) {
    if (random() % 4 != 0) calls = AnyCalls(random);
  }
  return communicator;
}

NcclChoices AnyChoices(uint64_t seed) {
  std::mt19937_64 random(seed);
  NcclChoices choices;
  choices.machines = {{"a", {"A machine", 90, "GenuineIntel"}}, {"b", {"B \"machine\"", 80, "AuthenticAMD"}}};
  const NcclCommunicator shared = AnyCommunicator(random);
  for (const char* release : {"2.9.8", "2.28.9", "2.30.7"}) {
    NcclReleaseChoices& known = choices.releases[release];
    if (random() % 2 == 0) known.constants = {1.5, 2.25, 0};
    known.worlds[{"a", 2, 8}] = shared;
    known.worlds[{"b", 1, 8}] = random() % 2 == 0 ? shared : AnyCommunicator(random);
  }
  return choices;
}

TEST(NcclChoicesFile, EverythingComesBack) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const NcclChoices choices = AnyChoices(seed);
    const auto text = FormatNcclChoices(choices);
    ASSERT_TRUE(text) << text.error().message;
    const auto parsed = ParseNcclChoices(*text, "x");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, choices) << "seed " << seed;
    EXPECT_EQ(*FormatNcclChoices(*parsed), *text) << "seed " << seed;
  }
}

TEST(NcclChoicesFile, IsReplacedOnDiskInOneStep) {
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("{}.nccl-choices", ::getpid());
  ASSERT_TRUE(WriteNcclChoices(path, AnyChoices(1)));
  ASSERT_TRUE(WriteNcclChoices(path, AnyChoices(2)));
  const auto read = ReadNcclChoices(path);
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".draft"));
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, AnyChoices(2));
}

TEST(NcclChoicesFile, WhatReleasesHaveInCommonIsWrittenOnce) {
  NcclChoices one = AnyChoices(3);
  one.releases.erase("2.9.8");
  one.releases.erase("2.30.7");
  NcclChoices two = one;
  two.releases["2.28.10"] = one.releases.at("2.28.9");
  const size_t grown = FormatNcclChoices(two)->size() - FormatNcclChoices(one)->size();
  EXPECT_LT(grown, FormatNcclChoices(one)->size() / 2);
  EXPECT_EQ(ReleasesInOrder(two), (std::vector<std::string>{"2.28.9", "2.28.10"}));
}

TEST(NcclChoicesFile, EveryTruncationIsAnError) {
  const std::string text = *FormatNcclChoices(AnyChoices(4));
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(ParseNcclChoices(std::string_view(text).substr(0, length), "x")) << "length " << length;
}

TEST(NcclChoicesFile, EveryFlippedBitIsAnError) {
  const std::string text = *FormatNcclChoices(AnyChoices(5));
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text;
    damaged[random() % text.size()] ^= static_cast<char>(1 << (random() % 7));
    const auto parsed = ParseNcclChoices(damaged, "x");
    // A flipped bit in the end line may leave the meaning unchanged. If the file is still read, nothing may
    // be lost.
    if (parsed) {
      EXPECT_EQ(*parsed, AnyChoices(5));
    }
  }
}

// Returns the error of a file in which `from` is replaced by `to`.
std::string ErrorWith(const std::string& from, const std::string& to) {
  std::string text = *FormatNcclChoices(AnyChoices(6));
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  text.replace(place, from.size(), to);
  const auto parsed = ParseNcclChoices(text, "x");
  return parsed ? "no error" : parsed.error().message;
}

TEST(NcclChoicesFile, ErrorsNameTheLineAndWhatIsWrong) {
  EXPECT_THAT(ErrorWith("\"version\":1", "\"version\":2"), HasSubstr("x:1: version 2, this build reads 1"));
  EXPECT_THAT(ErrorWith("dynamiccl-nccl-choices", "dynamiccl-measurements"), HasSubstr("x:1: not a file of"));
  EXPECT_THAT(ErrorWith("\"machine\":\"b\"", "\"machine\":\"a\""), HasSubstr("a second machine 'a'"));
  EXPECT_THAT(ErrorWith("\"release\":\"2.28.9\"", "\"release\":\"2.9.8\""), HasSubstr("a second release"));
  EXPECT_THAT(ErrorWith("\"world\":[\"a\"", "\"world\":[\"c\""), HasSubstr("machine 'c', which has no line"));
  EXPECT_THAT(ErrorWith("Tree/LL", "Tree/LX"), HasSubstr("'Tree/LX' is no pair"));
  EXPECT_THAT(ErrorWith("\"kind\":\"costs\"", "\"kind\":\"prices\""), HasSubstr("unknown kind 'prices'"));
}

TEST(NcclChoicesFile, AGraphForNvlsHasChannels) {
  NcclChoices choices;
  choices.machines = {{"a", {"A machine", 90, "GenuineIntel"}}};
  NcclCommunicator& communicator = choices.releases["2.28.9"].worlds[{"a", 1, 8}];
  communicator.channels = 4;
  communicator.graphs[Algorithm::kNvls] = {5, 8, 40, 60, 0, "NVL", "PXN", false};
  const auto parsed = ParseNcclChoices(*FormatNcclChoices(choices), "x");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("a graph for NVLS without channels"));
}

TEST(NcclChoicesFile, ACostOfAPairThatIsNotThereIsNotANumber) {
  NcclCalls calls;
  calls.pairs = {{Algorithm::kRing, Protocol::kLL}};
  calls.calls = {{.bytes = 8, .microseconds = {2.5f}}};
  EXPECT_EQ(calls.Cost(calls.calls[0], {Algorithm::kRing, Protocol::kLL}), 2.5f);
  EXPECT_TRUE(std::isnan(calls.Cost(calls.calls[0], {Algorithm::kTree, Protocol::kLL})));
}

}  // namespace
}  // namespace dynamiccl
