// SPDX-License-Identifier: Apache-2.0
#include "agents/config/config_sample.h"

#include <gtest/gtest.h>

#include <map>

#include "agents/config/config_training.h"
#include "tests/support/synthetic_sweep.h"

namespace dynamiccl::agents {
namespace {

TEST(ConfigSample, AFileWeighsAsTheRootOfItsKeys) {
  const auto keys = KeysOf({test::MakeSweep({.topologies = 1}), test::MakeSweep({.topologies = 4})});
  const auto samples = SamplesOf(keys);
  std::map<size_t, double> of_file, keys_of_file;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i > 0 && samples[i].key == samples[i - 1].key) {
      EXPECT_EQ(samples[i].weight, samples[i - 1].weight);
      continue;
    }
    EXPECT_EQ(samples[i].key, i == 0 ? 0 : samples[i - 1].key + 1) << "samples of a key stand together";
    of_file[keys[samples[i].key].file] += samples[i].weight;
    ++keys_of_file[keys[samples[i].key].file];
  }
  ASSERT_EQ(of_file.size(), 2u);
  EXPECT_EQ(keys_of_file[1], 4 * keys_of_file[0]);
  EXPECT_NEAR(of_file[1] / of_file[0], 2, 1e-9);
}

TEST(ConfigSample, AtTheNetworksLevelsOnlyKeysMove) {
  const auto samples = SamplesOf(KeysOf({test::MakeSweep({.topologies = 1})}));
  ConfigTrainingSettings settings;
  settings.iterations = 2;
  ConfigTrainingReport report;
  const auto levelled = AtLevelsOf(TrainConfig(samples, settings, &report), samples);
  ASSERT_EQ(levelled.size(), samples.size());
  bool moved = false;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].key != samples[i - 1].key) continue;
    EXPECT_NEAR(levelled[i].residual - levelled[i - 1].residual,
                samples[i].residual - samples[i - 1].residual, 1e-9);
    moved |= levelled[i].residual != samples[i].residual;
  }
  EXPECT_TRUE(moved);
  EXPECT_TRUE(AtLevelsOf(TrainConfig(samples, settings, &report), {}).empty());
}

}  // namespace
}  // namespace dynamiccl::agents
