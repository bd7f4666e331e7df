// SPDX-License-Identifier: Apache-2.0
#include "agents/config/config_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "agents/config/config_training.h"
#include "src/collective/size_class.h"
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

// Training must get the inputs that a job computes for a call of this size (PolicyEntries in
// plugin/runtime/loaded_choices.cc). This also holds for sizes inside a size class. It also holds if a sweep
// with a budget left out the config that the cost model takes for the cheapest.
TEST(ConfigSample, HasTheInputsOfAJob) {
  MeasurementFile file = test::MakeSweep({.topologies = 2});
  ConfigMask offered[kTunableCollectives];
  for (Measurement& row : file.rows) {
    offered[static_cast<size_t>(row.collective)].set(ConfigIndex(row.config.algorithm, row.config.protocol));
    row.bytes += row.bytes / 5;
  }
  std::erase_if(file.rows, [](const Measurement& row) {
    const bool some = row.bytes > 100'000 && row.bytes < 2'000'000;
    return some && !row.is_default && row.config.protocol != Protocol::kSimple;
  });
  const std::vector<SweptKey> keys = KeysOf({file});
  size_t sample = 0;
  const auto samples = SamplesOf(keys);
  for (const SweptKey& key : keys) {
    const Collective collective = key.question.collective;
    const ConfigContext of_job(key.model, {collective, LowerBound(SizeClassOf(key.question.bytes)),
                                           offered[static_cast<size_t>(collective)]});
    for (const SweptConfig& swept : key.configs) {
      const ConfigAction action = of_job.Price(swept.config);
      if (action.prior <= 0) continue;
      ASSERT_LT(sample, samples.size());
      EXPECT_EQ(samples[sample].inputs, of_job.Features(action));
      EXPECT_NEAR(samples[sample].residual + action.prior / 65536.0, std::log2(swept.time.pick * 1e6), 1e-9);
      ++sample;
    }
  }
  EXPECT_EQ(sample, samples.size());
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
