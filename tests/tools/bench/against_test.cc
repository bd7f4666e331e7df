// SPDX-License-Identifier: Apache-2.0
// Tests the comparison's control lines, rounds and ratios. The ranks are scripts that answer with a test's
// numbers and run no collective.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/bench/against/comparison.h"
#include "tools/bench/against/side_programs.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// The script of a rank. It answers with the entries of its list of times in order, and with copy rates from
// its second list.
constexpr const char* kFakeRank = R"(
import itertools, os, socket, sys
path, times, copies, refused = sys.argv[1:]
times, copies = itertools.cycle(times.split(",")), itertools.cycle(copies.split(","))
line = socket.socket(socket.AF_UNIX)
line.connect(path)
with line.makefile("rw") as control:
    def say(text):
        control.write(text + "\n")
        control.flush()
    say("hello " + os.environ["RANK"])
    for order in control:
        word = order.split()
        if word[0] == "quit":
            break
        if word[0] == "setup":
            say("error no such call" if word[1] == refused else "ok Ring/LL/1" if os.environ["RANK"] == "0" else "ok")
        elif word[0] == "time":
            time = next(times)
            say(f"times {time} {time} {time}")
        else:
            copy = next(copies)
            say(f"copies {copy} {copy}")
)";

class Against : public ::testing::Test {
 protected:
  Against() {
    std::string pattern = (fs::temp_directory_path() / "against-test-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ + "/rank.py") << kFakeRank;
  }
  ~Against() override { fs::remove_all(folder_); }

  Result<Side> Fake(const std::string& name, const std::string& times, const std::string& copies,
                    const std::string& refused = "none") {
    return Side::Start({.name = name,
                        .command = {"python3", folder_ + "/rank.py", "@socket", times, copies, refused},
                        .starts_all_ranks = false},
                       2, folder_);
  }

  static ComparedCall AllReduceOf(uint64_t count) {
    return {.collective = TestedCollective::kAllReduce,
            .layout = LayoutOfArgument(TestedCollective::kAllReduce, count, 2)};
  }

  std::string folder_;
};

TEST_F(Against, RatiosAreTheirTimeOverOurs) {
  std::vector<Side> sides;
  sides.push_back(std::move(*Fake("ours", "100", "20")));
  sides.push_back(std::move(*Fake("peer", "250", "20")));
  const auto cell = CompareCall(sides, AllReduceOf(1000), 2, {.rounds = 3, .burst_ms = 1});
  ASSERT_TRUE(cell.has_value()) << cell.error().message;
  EXPECT_EQ(cell->sides[0].config, "Ring/LL/1");
  EXPECT_EQ(cell->sides[0].microseconds, (std::vector<double>{100, 100, 100}));
  EXPECT_DOUBLE_EQ(*cell->TimeRatio(cell->sides[1]), 2.5);
  EXPECT_DOUBLE_EQ(cell->algorithm_gbps(cell->sides[0]), 0.04);
  EXPECT_DOUBLE_EQ(cell->copy_limit_gbps, 20 * 2.0 / 5);
  EXPECT_EQ(cell->void_rounds, 0);
}

TEST_F(Against, RoundsInWhichTheMachineChangedAreRepeated) {
  std::vector<Side> sides;
  // The copy rates before and after each round are 20 20, 20 10 (this round is void), 20 20, ...
  sides.push_back(std::move(*Fake("ours", "100", "20,20,20,10")));
  const auto cell = CompareCall(sides, AllReduceOf(1000), 2, {.rounds = 2, .burst_ms = 1});
  ASSERT_TRUE(cell.has_value()) << cell.error().message;
  EXPECT_EQ(cell->void_rounds, 1);
  EXPECT_EQ(cell->sides[0].microseconds.size(), 2u);
}

TEST_F(Against, VoidRoundsAreKeptRatherThanNothing) {
  std::vector<Side> sides;
  sides.push_back(std::move(*Fake("ours", "100", "20,10")));
  const auto cell = CompareCall(sides, AllReduceOf(1000), 2, {.rounds = 2, .burst_ms = 1});
  ASSERT_TRUE(cell.has_value()) << cell.error().message;
  EXPECT_EQ(cell->void_rounds, 4);
  EXPECT_EQ(cell->sides[0].microseconds.size(), 2u);
}

TEST_F(Against, ASideWithoutTheCallSaysWhyAndHasNoRatio) {
  std::vector<Side> sides;
  sides.push_back(std::move(*Fake("ours", "100", "20")));
  sides.push_back(std::move(*Fake("peer", "250", "20", "all_reduce")));
  const auto cell = CompareCall(sides, AllReduceOf(1000), 2, {.rounds = 2, .burst_ms = 1});
  ASSERT_TRUE(cell.has_value()) << cell.error().message;
  EXPECT_NE(cell->sides[1].missing.find("no such call"), std::string::npos);
  EXPECT_EQ(cell->TimeRatio(cell->sides[1]), std::nullopt);
}

TEST_F(Against, ASideThatDoesNotStartIsAnErrorWithItsWords) {
  const auto side = Side::Start({.name = "peer",
                                 .command = {"python3", "-c", "raise SystemExit('no such device')"},
                                 .starts_all_ranks = false},
                                2, folder_);
  ASSERT_FALSE(side.has_value());
  EXPECT_NE(side.error().message.find("no such device"), std::string::npos) << side.error().message;
}

TEST(ControlLine, LinesInPiecesAndTheEnd) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ControlLine line{UniqueFd(ends[0])};
  UniqueFd other(ends[1]);
  ASSERT_EQ(::write(other.get(), "first\nsec", 9), 9);
  EXPECT_EQ(*line.Read(std::chrono::milliseconds(1000)), "first");
  EXPECT_EQ(line.Read(std::chrono::milliseconds(1)).error().kind, ErrorKind::kTimeout);
  ASSERT_EQ(::write(other.get(), "ond\n", 4), 4);
  EXPECT_EQ(*line.Read(std::chrono::milliseconds(1000)), "second");
  other.Reset();
  EXPECT_EQ(line.Read(std::chrono::milliseconds(1000)).error().kind, ErrorKind::kPeerFailed);
}

TEST(FindPeer, WhatIsNotHereComesWithTheCommandThatBringsIt) {
  const auto gloo = FindPeer("gloo", {.python = "/nowhere/python"});
  ASSERT_FALSE(gloo.has_value());
  EXPECT_NE(gloo.error().hint.find("pip install torch"), std::string::npos);
  EXPECT_FALSE(IsPeerName("mvapich"));
}

}  // namespace
}  // namespace dynamiccl
