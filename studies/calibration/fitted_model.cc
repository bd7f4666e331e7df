// SPDX-License-Identifier: Apache-2.0
// Coordinate descent. Each constant is scaled up and down by a factor and keeps the better value. The factors
// shrink from coarse to fine.
#include "studies/calibration/fitted_model.h"

#include <algorithm>
#include <cmath>

#include "tools/report/timing.h"

namespace dynamiccl {
namespace {

// Factors tried on each constant. With each factor, passes over all constants repeat while they help.
constexpr double kFactors[] = {4, 2, 1.4, 1.15, 1.05, 1.02};
constexpr int kMaxPasses = 40;
// A pass that lowers the error by less than this share does not help.
constexpr double kLeastGain = 1e-4;
// Start value, in microseconds, of a constant that is 0 and so cannot be scaled.
constexpr double kSeedUs = 1;

// One measured row; `log_us` is the logarithm of the median of its even repeats.
struct Sample {
  Collective collective;
  uint64_t bytes;
  CollectiveConfig config;
  double log_us;
};

std::vector<Sample> SamplesOf(const MeasurementFile& file, const std::string& topology) {
  std::vector<Sample> samples;
  for (const Measurement& row : file.rows) {
    if (row.topology != topology || row.is_default || row.config.leaves_nccl_alone()) continue;
    std::vector<double> picking;
    for (size_t i = 0; i < row.microseconds.size(); i += 2) picking.push_back(row.microseconds[i]);
    const double median = Summarize(std::move(picking)).median;
    if (median > 0) samples.push_back({row.collective, row.bytes, row.config, std::log(median)});
  }
  return samples;
}

// Sum of squared logarithms of model / measured.
double SquaredError(const CostModelInput& model, const std::vector<Sample>& samples) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const double cost = EstimateCost(model, sample.collective, sample.bytes, sample.config);
    const double miss = (cost > 0 ? std::log(cost) : 0) - sample.log_us;
    sum += miss * miss;
  }
  return sum;
}

// The constants that the fit may change.
std::vector<double*> ConstantsOf(CostModelInput& model) {
  CostConstants& constants = model.constants;
  std::vector<double*> all{&constants.ll_max_bandwidth,
                           &constants.ring_ll128_channel_bandwidth,
                           &constants.tree_ll128_channel_bandwidth,
                           &constants.tree_channel_bandwidth,
                           &model.fabric.intra.bandwidth_gbps,
                           &model.fabric.inter.bandwidth_gbps};
  for (auto* table : {&constants.base_latency_us, &constants.intra_latency_us, &constants.inter_latency_us}) {
    for (auto& row : *table) {
      for (double& value : row) all.push_back(&value);
    }
  }
  return all;
}

// Tries value * factor and value / factor, and leaves the best of the three in `value`. Returns the error
// with it.
double Improve(CostModelInput& model, double& value, double factor, const std::vector<Sample>& samples,
               double error) {
  const double before = value;
  double best = before;
  for (const double tried : {before * factor, before / factor}) {
    value = tried;
    const double squared = SquaredError(model, samples);
    if (squared >= error) continue;
    error = squared;
    best = tried;
  }
  value = best;
  return error;
}

double Fit(CostModelInput& model, const std::vector<Sample>& samples) {
  const std::vector<double*> constants = ConstantsOf(model);
  for (size_t i = 0; i < constants.size(); ++i) {
    if (*constants[i] <= 0) *constants[i] = kSeedUs;
  }
  double error = SquaredError(model, samples);
  for (const double factor : kFactors) {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      const double before = error;
      for (double* value : constants) error = Improve(model, *value, factor, samples, error);
      if (before - error <= kLeastGain * before) break;
    }
  }
  return error;
}

}  // namespace

std::vector<FittedModel> FitModels(const MeasurementFile& file) {
  std::vector<FittedModel> fitted;
  for (const MeasurementContext& context : file.contexts) {
    FittedModel model{.context = context};
    const std::vector<Sample> samples = SamplesOf(file, context.topology);
    if (!samples.empty()) {
      const auto root = [&](double squared) {
        return std::sqrt(squared / static_cast<double>(samples.size()));
      };
      model.error_before = root(SquaredError(model.context.model, samples));
      model.error_after = root(Fit(model.context.model, samples));
    }
    fitted.push_back(std::move(model));
  }
  return fitted;
}

CollectiveConfig ModelsChoice(const CostModelInput& model, Collective collective, uint64_t bytes,
                              const ConfigMask& allowed) {
  CollectiveConfig choice = CheapestConfig(EstimateCosts(model, collective, bytes, 1, allowed));
  if (choice.leaves_nccl_alone()) return choice;
  choice.channels =
      static_cast<uint8_t>(DefaultChannels(model, collective, bytes, choice.algorithm, choice.protocol));
  return choice;
}

}  // namespace dynamiccl
