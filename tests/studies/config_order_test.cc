// SPDX-License-Identifier: Apache-2.0
#include "studies/config_order/config_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/test_seed.h"

namespace dynamiccl {
namespace {

Measurement Row(uint64_t bytes, Algorithm algorithm, Protocol protocol, int channels, float microseconds) {
  return {.topology = "t",
          .collective = Collective::kAllReduce,
          .bytes = bytes,
          .config = {algorithm, protocol, static_cast<uint8_t>(channels)},
          .is_default = algorithm == Algorithm::kUndefined,
          .microseconds = {microseconds, microseconds, microseconds}};
}

MeasurementFile File(std::vector<Measurement> rows) {
  MeasurementFile file;
  file.contexts = {{"t", {}}};
  file.rows = std::move(rows);
  return file;
}

OrderAgreement Compare(const MeasurementFile& a, const MeasurementFile& b, OrderOptions options = {}) {
  options.topologies = {{"t", "t"}};
  auto agreement = CompareOrder(a, b, options);
  EXPECT_TRUE(agreement) << agreement.error().message;
  return agreement ? *agreement : OrderAgreement{};
}

TEST(ConfigOrder, CountsPairsOfTheBestChannelCounts) {
  const auto ours = File({Row(1024, Algorithm::kRing, Protocol::kLL, 1, 9),
                          Row(1024, Algorithm::kRing, Protocol::kLL, 4, 3),
                          Row(1024, Algorithm::kRing, Protocol::kSimple, 1, 5),
                          Row(1024, Algorithm::kTree, Protocol::kLL, 1, 20),
                          Row(1024, Algorithm::kUndefined, Protocol::kUndefined, 0, 1)});
  const auto theirs = File({Row(1024, Algorithm::kRing, Protocol::kLL, 1, 30),
                            Row(1024, Algorithm::kRing, Protocol::kSimple, 1, 50),
                            Row(1024, Algorithm::kTree, Protocol::kLL, 1, 40)});
  const OrderAgreement agreement = Compare(ours, theirs);
  EXPECT_EQ(agreement.cells, 1);
  ASSERT_EQ(agreement.concordant.size(), 2u);  // Ring/LL is faster than both others, with four channels
  ASSERT_EQ(agreement.discordant.size(), 1u);
  EXPECT_EQ(agreement.discordant[0].arm, "Ring Simple");
  EXPECT_EQ(agreement.discordant[0].other_arm, "Tree LL");
  EXPECT_DOUBLE_EQ(agreement.discordant[0].ratio, 0.25);
  EXPECT_DOUBLE_EQ(agreement.discordant[0].other_ratio, 1.25);
  EXPECT_NEAR(agreement.Tau(), 1.0 / 3, 1e-12);
}

TEST(ConfigOrder, UntoldProtocolsCompareAlgorithms) {
  const auto ours = File({Row(1024, Algorithm::kRing, Protocol::kLL, 1, 9),
                          Row(1024, Algorithm::kRing, Protocol::kSimple, 1, 4),
                          Row(1024, Algorithm::kTree, Protocol::kLL, 1, 6)});
  const auto theirs = File({Row(1024, Algorithm::kRing, Protocol::kUndefined, 0, 1),
                            Row(1024, Algorithm::kTree, Protocol::kUndefined, 0, 2)});
  const OrderAgreement agreement = Compare(ours, theirs);
  ASSERT_EQ(agreement.concordant.size(), 1u);
  EXPECT_EQ(agreement.concordant[0].arm, "Ring");
  EXPECT_DOUBLE_EQ(agreement.Tau(), 1);
}

TEST(ConfigOrder, SizesAreScaledAndMatchedWithinHalfAnOctave) {
  const auto rows = [](uint64_t bytes) {
    return std::vector{Row(bytes, Algorithm::kRing, Protocol::kLL, 1, 1),
                       Row(bytes, Algorithm::kTree, Protocol::kLL, 1, 2)};
  };
  OrderOptions tenth;
  tenth.size_scale = 0.1;
  EXPECT_EQ(Compare(File(rows(1024)), File(rows(10000)), tenth).concordant.size(), 1u);
  EXPECT_EQ(Compare(File(rows(1024)), File(rows(10000))).unmatched_cells, 1);
}

TEST(ConfigOrder, SmallDifferencesAreTiesInEitherFile) {
  const auto close = File({Row(64, Algorithm::kRing, Protocol::kLL, 1, 1.00F),
                           Row(64, Algorithm::kTree, Protocol::kLL, 1, 1.04F)});
  const auto far =
      File({Row(64, Algorithm::kRing, Protocol::kLL, 1, 1), Row(64, Algorithm::kTree, Protocol::kLL, 1, 3)});
  EXPECT_EQ(Compare(close, far).ties.size(), 1u);
  EXPECT_EQ(Compare(far, close).ties.size(), 1u);
  OrderOptions exact;
  exact.tie = 0;
  EXPECT_EQ(Compare(close, far, exact).concordant.size(), 1u);
}

// The order of a sweep must agree fully with itself, and not at all with that of inverse times. Swapping the
// files must change nothing.
TEST(ConfigOrder, RandomSweepsAgreeWithThemselvesAndNotWithTheirInverse) {
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::lognormal_distribution<float> times(3, 1);
  std::vector<Measurement> rows;
  for (uint64_t bytes = 256; bytes <= 1 << 20; bytes *= 4) {
    for (const auto algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls}) {
      for (const auto protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple})
        rows.push_back(Row(bytes, algorithm, protocol, 1, times(random)));
    }
  }
  auto inverse = rows;
  for (Measurement& row : inverse) {
    for (float& time : row.microseconds) time = 1000 / time;
  }
  EXPECT_DOUBLE_EQ(Compare(File(rows), File(rows)).Tau(), 1);
  EXPECT_DOUBLE_EQ(Compare(File(rows), File(inverse)).Tau(), -1);
  const auto shuffled = [&] {
    auto copy = rows;
    std::vector<float> all;
    for (const Measurement& row : rows) all.push_back(row.microseconds[0]);
    std::shuffle(all.begin(), all.end(), random);
    for (size_t i = 0; i < copy.size(); ++i) copy[i].microseconds.assign(3, all[i]);
    return copy;
  }();
  EXPECT_DOUBLE_EQ(Compare(File(rows), File(shuffled)).Tau(), Compare(File(shuffled), File(rows)).Tau());
}

TEST(ConfigOrder, AnUnknownTopologyIsNamedWithThoseThatExist) {
  const auto file = File({Row(64, Algorithm::kRing, Protocol::kLL, 1, 1)});
  OrderOptions options;
  options.topologies = {{"t", "elsewhere"}};
  const auto agreement = CompareOrder(file, file, options);
  ASSERT_FALSE(agreement);
  EXPECT_EQ(agreement.error().message, "no topology 'elsewhere' among the measurements");
  EXPECT_EQ(agreement.error().hint, "there are: t");
}

}  // namespace
}  // namespace dynamiccl
