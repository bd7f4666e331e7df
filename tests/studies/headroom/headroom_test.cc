// SPDX-License-Identifier: Apache-2.0
// Tests with sweeps whose best config is known. The audit must find its gain, and must find none if there is
// none.
#include "studies/headroom/headroom.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "studies/headroom/key_field.h"
#include "tools/calibration/timed_systems.h"

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kRing{Algorithm::kRing, Protocol::kSimple, 4};
constexpr CollectiveConfig kTree{Algorithm::kTree, Protocol::kSimple, 4};

class Sweep {
 public:
  explicit Sweep(double noise, uint64_t seed = 1) : noise_(noise), random_(seed) {}

  void Topology(const std::string& name, int max_channels = 4) {
    CostModelInput model;
    model.fabric = {2, 2, max_channels, {1, 8}, {10, 2}};
    file_.contexts.push_back({name, model});
  }
  void Row(const std::string& topology, uint64_t bytes, const CollectiveConfig& config, bool is_default,
           double us, int repeats = 12) {
    Measurement row{topology, Collective::kAllReduce, bytes, config, is_default, {}};
    for (int i = 0; i < repeats; ++i)
      row.microseconds.push_back(static_cast<float>(us * std::exp(noise_ * normal_(random_))));
    file_.rows.push_back(row);
  }
  std::vector<ArmCell> Cells() const { return CellsOfSweep(file_); }

 private:
  MeasurementFile file_;
  double noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

HeadroomRow Whole(const std::vector<ArmCell>& cells) {
  return SummarizeHeadroom(cells, [](const ArmCell&) { return "all"; }).at(0);
}

TEST(Headroom, FindsTheGainOfAQuietSweepExactly) {
  Sweep sweep(0);
  sweep.Topology("t");
  sweep.Row("t", 1024, kRing, true, 100);
  sweep.Row("t", 1024, kTree, false, 80);
  const CellHeadroom headroom = HeadroomOf(sweep.Cells().at(0));
  EXPECT_NEAR(headroom.gain, std::log2(1.25), 1e-6);
  EXPECT_EQ(headroom.noise, 0);
  EXPECT_TRUE(headroom.clear_gain());
  EXPECT_TRUE(headroom.repeated);
}

TEST(Headroom, FindsTheGainOfANoisySweepWithoutBias) {
  Sweep sweep(0.05);
  sweep.Topology("t");
  for (uint64_t bytes = 1; bytes <= 400; ++bytes) {
    sweep.Row("t", bytes, kRing, true, 100);
    for (uint8_t channels = 1; channels <= 20; ++channels)
      sweep.Row("t", bytes, {Algorithm::kRing, Protocol::kLL, channels}, false, channels == 7 ? 80 : 100);
  }
  const HeadroomRow row = Whole(sweep.Cells());
  EXPECT_EQ(row.cells, 400u);
  EXPECT_NEAR(row.mean_gain, std::log2(1.25), 0.01);
  EXPECT_GT(row.clear, 380u);
  EXPECT_EQ(row.clear_losses, 0u);
}

TEST(Headroom, FindsNoneWhereAllArmsAreEqual) {
  Sweep sweep(0.1);
  sweep.Topology("t");
  for (uint64_t bytes = 1; bytes <= 400; ++bytes) {
    sweep.Row("t", bytes, kRing, true, 100);
    for (uint8_t channels = 1; channels <= 20; ++channels)
      sweep.Row("t", bytes, {Algorithm::kRing, Protocol::kLL, channels}, false, 100);
  }
  const HeadroomRow row = Whole(sweep.Cells());
  EXPECT_GT(row.mean_naive, 0.05);  // picking and timing by the same repeats pretends a gain
  EXPECT_NEAR(row.mean_gain, 0, 0.01);
  EXPECT_LT(row.clear, 12u);
  EXPECT_NEAR(row.median_noise, 0.1 * std::log2(std::exp(1)) * 1.2533 * std::sqrt(2.0 / 6), 0.015);
}

TEST(Headroom, ALossByPickingIsALoss) {
  ArmCell cell;
  cell.arms[kDefaultArm] = {{100, 100}, 2};
  cell.arms["Ring"] = {{90, 120}, 2};
  const CellHeadroom headroom = HeadroomOf(cell);
  EXPECT_NEAR(headroom.gain, std::log2(100.0 / 120) / 2, 1e-9);  // the other half keeps the default
  EXPECT_FALSE(headroom.clear_gain());
}

TEST(Headroom, OneRepeatIsSaidToBeNone) {
  ArmCell cell;
  cell.arms[kDefaultArm] = {{100, 100}, 1};
  cell.arms["Ring"] = {{50, 50}, 1};
  EXPECT_FALSE(HeadroomOf(cell).repeated);
  EXPECT_EQ(cell.Noise(), 0);
}

TEST(PublishedTimes, SettingsOfAMachineAreArmsOfOneCell) {
  const std::string path = testing::TempDir() + "/settings.csv";
  std::ofstream(path) << "system,nccl,config,bytes,ranks,nodes,coll,oop_us,ip_us\n"
                         "alps,2.23,default|x,1024,8,2,all_reduce,100,104\n"
                         "alps,2.23,CROSS_NIC_1,1024,8,2,all_reduce,50,50\n"
                         "alps,2.23,CROSS_NIC_1,2048,8,2,all_reduce,50,50\n"
                         "polaris,2.21,env2,1024,8,2,all_reduce,10,10\n"
                         "polaris,2.21,env1,1024,8,2,all_reduce,20,20\n";
  const auto cells = ReadCells(path);
  ASSERT_TRUE(cells.has_value()) << Describe(cells.error());
  ASSERT_EQ(cells->size(), 2u);
  EXPECT_EQ((*cells)[0].system, "alps / 2.23");
  EXPECT_EQ((*cells)[0].arms.at(kDefaultArm).halves[1], 104);
  EXPECT_EQ((*cells)[0].arms.at("CROSS_NIC_1").repeats, 2);
  EXPECT_EQ((*cells)[1].arms.at(kDefaultArm).halves[0], 20);  // the time of env1, the first by name
}

TEST(PublishedTimes, ForcedAlgorithmsStandBesideTheOpenChoice) {
  const auto cells = ReadCells(CALIBRATION_SAMPLES "/mn5_h100_allreduce_forced_algo.csv");
  ASSERT_TRUE(cells.has_value()) << Describe(cells.error());
  EXPECT_EQ(cells->size(), 4u * 9);
  for (const ArmCell& cell : *cells) EXPECT_EQ(cell.arms.size(), 3u);
}

// Two places with the same stated fabric. The arm that halves the time in one place doubles it in the other.
std::vector<ArmCell> Opposites(double noise, int sizes) {
  Sweep sweep(noise);
  sweep.Topology("normal");
  sweep.Topology("congested");
  for (int i = 1; i <= sizes; ++i) {
    const auto bytes = static_cast<uint64_t>(i);
    for (const std::string topology : {"normal", "congested"}) {
      sweep.Row(topology, bytes, kRing, true, 100);
      sweep.Row(topology, bytes, kRing, false, topology == "normal" ? 50 : 100);
      sweep.Row(topology, bytes, kTree, false, topology == "normal" ? 100 : 50);
    }
  }
  return sweep.Cells();
}

TEST(KeyField, TellingRegimesApartGainsHalfAnOctave) {
  const std::vector<ArmCell> cells = Opposites(0.03, 100);
  const std::vector<FieldGroup> groups = GroupsBy(KeyField::kRegime, cells);
  ASSERT_EQ(groups.size(), 100u);
  const FieldWorth worth = WorthOf(groups);
  EXPECT_NEAR(worth.clear_conflicts, 1, 1e-9);
  EXPECT_NEAR(worth.gain, 0.5, 0.01);
  EXPECT_NEAR(worth.apart, 1, 0.01);
  const std::vector<RegimePair> pairs = RegimePairs(cells);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].normal, "normal");
  EXPECT_EQ(pairs[0].other, "congested");
}

TEST(KeyField, EqualPlacesConflictByNoiseAlone) {
  Sweep sweep(0.1);
  sweep.Topology("one");
  sweep.Topology("same");
  for (uint64_t bytes = 1; bytes <= 300; ++bytes) {
    for (const std::string topology : {"one", "same"}) {
      sweep.Row(topology, bytes, kRing, true, 100);
      for (uint8_t channels = 1; channels <= 12; ++channels)
        sweep.Row(topology, bytes, {Algorithm::kRing, Protocol::kLL, channels}, false, 90);
    }
  }
  const std::vector<ArmCell> cells = sweep.Cells();
  const FieldWorth worth = WorthOf(GroupsBy(KeyField::kRegime, cells));
  EXPECT_GT(worth.naive_conflicts, 0.9);
  EXPECT_LT(worth.clear_conflicts, 0.03);
  EXPECT_NEAR(worth.gain, 0, 0.01);
}

TEST(KeyField, AFabricThatIsStatedIsNoRegime) {
  Sweep sweep(0);
  sweep.Topology("one", 4);
  sweep.Topology("other", 8);
  for (const std::string topology : {"one", "other"}) {
    sweep.Row(topology, 64, kRing, true, 100);
    sweep.Row(topology, 64, kTree, false, 90);
  }
  const std::vector<ArmCell> cells = sweep.Cells();
  EXPECT_TRUE(GroupsBy(KeyField::kRegime, cells).empty());
  EXPECT_EQ(GroupsBy(KeyField::kFabric, cells).size(), 1u);
  EXPECT_TRUE(GroupsBy(KeyField::kSize, cells).empty());
}

}  // namespace
}  // namespace dynamiccl
