// SPDX-License-Identifier: Apache-2.0
// Prices each measured configuration with the cost model and estimates the noise of its median.
#include "agents/config/config_sample.h"

#include <cmath>
#include <map>

#include "src/base/statistics.h"

namespace dynamiccl::agents {
namespace {

// The standard error of a cell's median for normal noise, in octaves: the standard deviation is 1.4826 times
// the median absolute deviation, and a median's standard error is sqrt(pi / 2) = 1.2533 times that of a mean.
// A single measured time has no deviation. The error is then derived from its difference to the other half of
// the repeats: over many cells, the median absolute value of this difference is sqrt(2) / 1.4826 times the
// standard error.
double ErrorOfMedian(const SweptConfig& swept) {
  const std::vector<float>& microseconds = swept.picks;
  if (microseconds.size() < 2)
    return kSigmasOfMedianDeviation / std::sqrt(2.0) *
           std::abs(std::log2(swept.time.pick / swept.time.value));
  std::vector<double> logs;
  for (const float us : microseconds) logs.push_back(std::log2(us));
  const double deviation = RobustDeviationInPlace(MedianInPlace(logs), logs);
  return deviation * 1.2533 / std::sqrt(static_cast<double>(microseconds.size()));
}

template <typename SampleOf>
// Makes a sample of each configuration that the cost model can price. `sample_of` makes it from the
// configuration's features, the cost model's cost (log2) and the measured log2 of picoseconds.
std::vector<ConfigSample> PricedSamples(const std::vector<SweptKey>& keys, SampleOf sample_of) {
  std::map<size_t, double> keys_of_file;
  for (const SweptKey& key : keys) ++keys_of_file[key.file];
  std::vector<ConfigSample> samples;
  for (size_t number = 0; number < keys.size(); ++number) {
    const SweptKey& key = keys[number];
    const ConfigContext context(key.model, QuestionOfJobs(key.question));
    for (const SweptConfig& swept : key.configs) {
      const ConfigAction action = context.Price(swept.config);
      if (action.prior <= 0) continue;
      ConfigSample sample =
          sample_of(context.Features(action), action.prior / 65536.0, std::log2(swept.time.pick * 1e6));
      sample.key = number;
      sample.weight = 1 / std::sqrt(keys_of_file[key.file]);
      sample.noise = ErrorOfMedian(swept);
      samples.push_back(sample);
    }
  }
  return samples;
}

}  // namespace

std::vector<ConfigSample> SamplesOf(const std::vector<SweptKey>& keys) {
  return PricedSamples(keys, [](const ConfigInputs& inputs, double prior, double log2_picoseconds) {
    return ConfigSample{inputs, log2_picoseconds - prior};
  });
}

ConfigInputs WithoutPrior(ConfigInputs inputs) {
  inputs[static_cast<size_t>(ConfigFeature::kPrior)] = 0;
  inputs[static_cast<size_t>(ConfigFeature::kPriorOverBest)] = 0;
  inputs[static_cast<size_t>(ConfigFeature::kChannelsOverDefault)] = 0;
  return inputs;
}

std::vector<ConfigSample> SamplesWithoutPrior(const std::vector<SweptKey>& keys, double offset) {
  return PricedSamples(keys, [offset](const ConfigInputs& inputs, double, double log2_picoseconds) {
    return ConfigSample{WithoutPrior(inputs), log2_picoseconds - offset};
  });
}

}  // namespace dynamiccl::agents
