// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <tuple>

#include "src/simulator/system.h"

namespace dynamiccl {
namespace {

System Sample() {
  System system{.name = "a \"quoted\" name",
                .source = "numbers of a test",
                .ranks_per_node = 4,
                .max_channels = 16,
                .formula_share = 0.5,
                .residual_reach = 0.9,
                .line_share = 0.25,
                .drift_bytes_per_rank = 1 << 18};
  system.network_ranks = 2;
  system.errors = {{Collective::kAllGather, 8, 3, 0.05, 0.1}, {Collective::kAllReduce, 64, 27, 1.0 / 3, 0.5}};
  system.intervals = {{Collective::kAllGather, 0.25, 12, 0, 0},
                      {Collective::kAllReduce, 1.0 / 3, 30, 1.5, 90}};
  system.path(Algorithm::kRing, Protocol::kLL) = {5, 0.8, 2.5, 100, 10, 0};
  system.path(Algorithm::kRing, Protocol::kSimple) = {1.0 / 3, 1e-7, 12, 200, 48, 12.5};
  system.path(Algorithm::kNvlsTree, Protocol::kSimple) = {30, 1, 2, 300, 0, 0};
  for (const int ranks : {8, 64}) {
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{1} << 20, uint64_t{1} << 32}) {
      system.residuals.push_back({Collective::kAllReduce, Algorithm::kUndefined, Protocol::kUndefined, ranks,
                                  bytes, 0.1 / static_cast<double>(bytes)});
      system.residuals.push_back({Collective::kAllGather, Algorithm::kRing, Protocol::kLL, ranks, bytes, -2});
    }
  }
  std::stable_sort(system.residuals.begin(), system.residuals.end(),
                   [](const Residual& a, const Residual& b) {
                     return std::tuple(a.collective, a.n_ranks) < std::tuple(b.collective, b.n_ranks);
                   });
  return system;
}

const char kByHand[] = R"(version = 1
name = "n"
source = "s"
ranks_per_node = 2
max_channels = 4
[[path]]
algorithm = "Ring"
protocol = "LL"
base_us = 1
intra_hop_us = 1.5
inter_hop_us = 2
intra_gbps = 10
# xxh3 unchecked
)";

TEST(SystemFile, ComesBackBitForBit) {
  const System system = Sample();
  const auto read = ParseSystem(FormatSystem(system), "s.toml");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(*read, system);
  EXPECT_EQ(FormatSystem(*read), FormatSystem(system));
}

TEST(SystemFile, FilesByHandNeedNoHash) {
  const auto read = ParseSystem(kByHand, "hand.toml");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(read->path(Algorithm::kRing, Protocol::kLL), (PathCosts{1, 1.5, 2, 10, 0, 0}));
  EXPECT_FALSE(read->path(Algorithm::kRing, Protocol::kSimple).known());
}

// Returns the sample of version 2 with this table in place of its own intervals.
std::string WithInterval(const std::string& table) {
  System system = Sample();
  system.intervals.clear();
  std::string text = FormatSystem(system);
  text.replace(text.rfind("# xxh3"), std::string::npos, "[[interval]]\n" + table + "\n# xxh3 unchecked\n");
  return text;
}

TEST(SystemFile, IntervalsAreReadAndWhatIsWrongIsNamed) {
  const auto read =
      ParseSystem(WithInterval("collective = 'Reduce'\nunseen = 0.5\nunseen_cells = 9"), "a.toml");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(read->intervals, (std::vector<StatedInterval>{{Collective::kReduce, 0, 0, 0.5, 9}}));
  for (const auto& [wrong, why] : {
           std::pair("collective = 'Reduce'", "needs 'seen' or 'unseen'"),
           {"collective = 'Reduce'\nseen_cells = 9", "'seen_cells' without 'seen'"},
           {"collective = 'Reduce'\nseen = 0.5", "seen_cells"},
           {"collective = 'Reduce'\nseen = 0.0\nseen_cells = 9", "'seen' must be a number"},
           {"collective = 'Reduce'\nseen = 21.0\nseen_cells = 9", "'seen' must be a number"},
           {"collective = 'Reduce'\nseen = 0.5\nseen_cells = 0", "seen_cells"},
           {"collective = 'Star'\nseen = 0.5\nseen_cells = 9", "no collective 'Star'"},
           {"collective = 'Reduce'\nseen = 0.5\nseen_cells = 9\nlow = 1.0", "low"},
           {"collective = 'Reduce'\nseen = 0.5\nseen_cells = 9\n[[interval]]\ncollective = 'Reduce'\nseen = "
            "0.5\n"
            "seen_cells = 9",
            "a second 'interval' for Reduce"},
       }) {
    const auto refused = ParseSystem(WithInterval(wrong), "a.toml");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(Describe(refused.error()).find(why), std::string::npos) << Describe(refused.error());
  }
}

// Version 1 has no line_share. Its predictions must stay the same.
TEST(SystemFile, OldVersionsAreRead) {
  const auto old = ParseSystem(kByHand, "old.toml");
  ASSERT_TRUE(old) << Describe(old.error());
  EXPECT_EQ(old->line_share, 0);
  std::string text = kByHand;
  text.replace(0, std::string("version = 1").size(), "version = 2\nline_share = 0.5");
  const auto read = ParseSystem(text, "new.toml");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(read->line_share, 0.5);
  EXPECT_NE(FormatSystem(*read).find("version = 2\n"), std::string::npos);
}

TEST(SystemFile, NoTruncatedFileIsRead) {
  const std::string text = FormatSystem(Sample());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(ParseSystem(text.substr(0, length), "s.toml")) << length;
  }
}

TEST(SystemFile, NoDamagedByteIsRead) {
  const std::string text = FormatSystem(Sample());
  std::mt19937 random(1);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
    EXPECT_FALSE(ParseSystem(damaged, "s.toml")) << at;
  }
}

std::string Refusal(const std::string& from, const std::string& to) {
  std::string text = kByHand;
  text.replace(text.find(from), from.size(), to);
  const auto read = ParseSystem(text, "hand.toml");
  return read ? "" : read.error().message;
}

TEST(SystemFile, ComplaintsNameThePlace) {
  EXPECT_EQ(Refusal("version = 1", "version = 3"),
            "hand.toml: line 1, column 11: 'version' must be an integer from 1 to 2");
  EXPECT_EQ(Refusal("max_channels = 4", "max_channels = 4\nline_share = 0.5"),
            "hand.toml: line 6, column 1: unknown key 'line_share'");
  EXPECT_EQ(Refusal("\"Ring\"", "\"Rong\""), "hand.toml: line 7, column 13: no algorithm 'Rong'");
  EXPECT_EQ(Refusal("intra_gbps = 10", "intra_gbps = 0"),
            "hand.toml: line 12, column 14: 'intra_gbps' must be above 0");
  EXPECT_EQ(Refusal("base_us = 1\n", "base_us = nan\n"),
            "hand.toml: line 9, column 11: 'base_us' must be a number from 0 to 1000000000");
  EXPECT_EQ(Refusal("base_us = 1\n", "bass_us = 1\n"), "hand.toml: line 9, column 1: unknown key 'bass_us'");
  EXPECT_EQ(Refusal("max_channels = 4", ""), "hand.toml: line 1, column 1: key 'max_channels' is missing");
  EXPECT_EQ(Refusal("ranks_per_node = 2", "ranks_per_node = 0"),
            "hand.toml: line 4, column 18: 'ranks_per_node' must be an integer from 1 to 1048576");
}

TEST(SystemFile, ResidualsOutOfOrderOrUnpairedAreRefused) {
  const auto with = [](const std::string& lines) {
    std::string text = kByHand;
    text.insert(text.find("# xxh3"), "[[residual]]\ncollective = \"AllReduce\"\nranks = 4\n" + lines + "\n");
    return text;
  };
  EXPECT_TRUE(ParseSystem(with("bytes = [8, 16]\nlog_factor = [0, 0.5]"), "s"));
  for (const char* const wrong :
       {"bytes = [16, 8]\nlog_factor = [0, 0.5]", "bytes = [8]\nlog_factor = [0, 0.5]",
        "bytes = []\nlog_factor = []", "bytes = [8]\nlog_factor = [21]", "bytes = [8]\nlog_factor = [inf]",
        "bytes = [0]\nlog_factor = [0]", "bytes = [8]\nlog_factor = ['a']", "bytes = 8\nlog_factor = [0]",
        "bytes = [8]\nlog_factor = [0]\nprotocol = 'LL'", "log_factor = [0]",
        "bytes = [8]\nlog_factor = [0]\n[[residual]]\ncollective = 'AllReduce'\nranks = 4\nbytes = "
        "[16]\nlog_factor = [0]"}) {
    const auto read = ParseSystem(with(wrong), "s");
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().message.find("s: line "), std::string::npos) << read.error().message;
  }
}

TEST(SystemFile, WritesNothingThatItWouldNotRead) {
  System system = Sample();
  system.path(Algorithm::kRing, Protocol::kLL).base_us = -1;
  EXPECT_FALSE(WriteSystemFile(testing::TempDir() + "/refused.toml", system));
}

TEST(SystemFile, GoesThroughADisk) {
  const std::string path = testing::TempDir() + "/system_file_test.toml";
  ASSERT_TRUE(WriteSystemFile(path, Sample()));
  const auto read = ReadSystemFile(path);
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(*read, Sample());
  std::remove(path.c_str());
  EXPECT_FALSE(ReadSystemFile(path));
}

}  // namespace
}  // namespace dynamiccl
