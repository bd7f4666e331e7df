// SPDX-License-Identifier: Apache-2.0
// Tests the parser with NCCL's TUNING lines as the releases print them.
#include "tests/real_nccl/tuning_log.h"

#include <gtest/gtest.h>

namespace dynamiccl::real_nccl {
namespace {

TEST(TuningLog, ReadsTheLineOfRelease228) {
  const auto line = ParseTuningLine(
      "host:12:34 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..15}");
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, (TuningLine{"AllReduce", 1048576, "TREE", "LL128", 0, 15}));
  EXPECT_EQ(line->channels(), 16);
}

TEST(TuningLog, ReadsTheLongerLineOfRelease232) {
  const auto line = ParseTuningLine(
      "NCCL INFO AllReduce: 67108864 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={2..15} "
      "cgaClusterSize 4");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->algorithm, "NVLS_TREE");
  EXPECT_EQ(line->first_channel, 2);
}

TEST(TuningLog, ReadsTheShortLineOfReleasesBefore224) {
  const auto line =
      ParseTuningLine("vm:16997:16999 [0] NCCL INFO 67108864 Bytes -> Algo 5 proto 2 time 304.658264");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->function, "");
  EXPECT_EQ(line->bytes, 67108864u);
  EXPECT_EQ(line->algorithm, "NVLS_TREE");
  EXPECT_EQ(line->protocol, "SIMPLE");
  EXPECT_EQ(line->channels(), 0);
}

TEST(TuningLog, IgnoresOtherLinesAndKeepsTheOrder) {
  const auto lines = ParseTuningLog(
      "NCCL INFO TUNER/Plugin: Using Table (v5)\n"
      "NCCL INFO Reduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n\n"
      "NCCL INFO Broadcast: 16 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].function, "Reduce");
  EXPECT_EQ(lines[1].function, "Broadcast");
}

TEST(TuningLog, TruncatedLineReportsNothing) {
  const std::string whole = "AllReduce: 1024 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}";
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseTuningLine(std::string_view(whole).substr(0, length))) << length;
  }
}

}  // namespace
}  // namespace dynamiccl::real_nccl
