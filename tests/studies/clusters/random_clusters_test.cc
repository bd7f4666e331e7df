// SPDX-License-Identifier: Apache-2.0
#include "studies/clusters/random_clusters.h"
#include "src/simulator/fit_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/collective/size_class.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

System SomeSystem() {
  System system{.name = "some", .source = "test", .ranks_per_node = 4, .max_channels = 16};
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple})
      system.path(algorithm, protocol) = PriorCosts(algorithm, protocol);
  }
  return system;
}

MeasurementFile Made(const ClusterOptions& options) {
  const System systems[] = {SomeSystem()};
  auto file = RandomClusters(systems, options);
  EXPECT_TRUE(file.has_value());
  return *file;
}

TEST(RandomClusters, EqualSeedsGiveEqualFilesAndOthersDiffer) {
  const MeasurementFile one = Made({.count = 3}), same = Made({.count = 3}),
                        other = Made({.count = 3, .seed = 2});
  EXPECT_EQ(one, same);
  EXPECT_FALSE(one.rows == other.rows);
  // A longer list must begin with the rows of a shorter one.
  const MeasurementFile longer = Made({.count = 4});
  EXPECT_TRUE(std::equal(one.rows.begin(), one.rows.end(), longer.rows.begin()));
}

TEST(RandomClusters, EveryKeyHasADefaultThatIsAmongItsConfigs) {
  const MeasurementFile file = Made({.count = 6});
  EXPECT_EQ(file.contexts.size(), 12u);
  std::map<std::tuple<std::string, Collective, uint64_t>, std::set<std::string>> configs;
  for (const Measurement& row : file.rows) {
    ASSERT_EQ(row.microseconds.size(), 6u);
    ASSERT_GT(*std::min_element(row.microseconds.begin(), row.microseconds.end()), 0);
    configs[{row.topology, row.collective, row.bytes}].insert(row.is_default ? "default"
                                                                             : Describe(row.config));
  }
  EXPECT_EQ(configs.size(), 12u * 3 * 6);
  for (const auto& [key, names] : configs) {
    EXPECT_TRUE(names.contains("default"));
    EXPECT_GE(names.size(), 7u);
  }
}

TEST(RandomClusters, EveryClassHasEachClassOfTheRangeOnceForEveryCollective) {
  const MeasurementFile file = Made({.count = 1, .every_class = true});
  std::map<std::pair<std::string, Collective>, std::set<int>> classes;
  for (const Measurement& row : file.rows) {
    EXPECT_EQ(row.bytes, LowerBound(SizeClassOf(row.bytes)));
    classes[{row.topology, row.collective}].insert(SizeClassOf(row.bytes).index);
  }
  EXPECT_EQ(classes.size(), 2u * 3);
  // 14 octaves with four size classes each, and the largest size.
  const int first = SizeClassOf(4 << 10).index;
  for (const auto& [line, indexes] : classes) {
    EXPECT_EQ(indexes.size(), 14u * 4 + 1);
    EXPECT_EQ(*indexes.begin(), first);
    EXPECT_EQ(*indexes.rbegin(), first + 14 * 4);
  }
}

TEST(RandomClusters, SurviveTheFileFormat) {
  const MeasurementFile file = Made({.count = 1});
  const auto text = FormatMeasurements(file);
  ASSERT_TRUE(text.has_value()) << Describe(text.error());
  const auto read = ParseMeasurements(*text, "clusters");
  ASSERT_TRUE(read.has_value()) << Describe(read.error());
  EXPECT_EQ(*read, file);
}

TEST(RandomClusters, WithoutNoiseAndSpreadRepeatsAreEqual) {
  for (const Measurement& row : Made({.count = 1, .spread = 0, .noise = 0, .outliers = 0}).rows) {
    for (const float us : row.microseconds) ASSERT_EQ(us, row.microseconds[0]);
  }
}

TEST(RandomClusters, NothingToStartFromIsAnError) {
  EXPECT_FALSE(RandomClusters({}, {}));
}

TEST(SweepOfPublished, ForcedAlgorithmsStandBesideTheOpenChoice) {
  TimedSystems data;
  ASSERT_TRUE(data.Read(CALIBRATION_SAMPLES "/mn5_h100_allreduce_forced_algo.csv"));
  const auto file = SweepOfPublished(data, "mn5_h100_allreduce_forced_algo", SomeSystem());
  ASSERT_TRUE(file.has_value()) << Describe(file.error());
  EXPECT_EQ(file->contexts.size(), 4u);
  EXPECT_EQ(file->rows.size(), 4u * 9 * 3);
  for (const Measurement& row : file->rows) EXPECT_GE(row.microseconds.size(), 2u);
  EXPECT_EQ(SweepOfPublished(data, "other", SomeSystem()).error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace dynamiccl
