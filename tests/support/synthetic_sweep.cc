// SPDX-License-Identifier: Apache-2.0
#include "tests/support/synthetic_sweep.h"

#include <cmath>
#include <random>

namespace dynamiccl::test {
namespace {

MeasurementContext ContextOf(int topology) {
  MeasurementContext context;
  context.topology = "t" + std::to_string(topology);
  const double slow = std::exp2(topology);
  context.model.fabric = {4, 2, 8, {1.5, 20}, {12 * slow, 2.5 / slow}};
  context.model.constants = NcclHopperConstants(2);
  return context;
}

// Returns the true time of a config divided by the cost model's. It depends on algorithm and protocol, and
// changes sides between 4 KB and 16 MB.
double HiddenFactor(const CollectiveConfig& config, uint64_t bytes, double most) {
  const double size = (std::log2(static_cast<double>(bytes)) - 18) / 6;  // about -1 to 1
  const double by_algorithm = config.algorithm == Algorithm::kTree ? 0.6 : -0.3;
  const double by_protocol = static_cast<int>(config.protocol) - 1.0;
  return std::pow(most, std::tanh(by_algorithm * size + 0.5 * by_protocol * size));
}

class Sweeper {
 public:
  explicit Sweeper(const SyntheticSweep& settings) : settings_(settings), random_(settings.seed) {}

  void AddKey(const MeasurementContext& context, Collective collective, uint64_t bytes,
              MeasurementFile& file) {
    const CostTable table = EstimateCosts(context.model, collective, bytes, 1, NcclConfigs(collective));
    CollectiveConfig standard = CheapestConfig(table);
    standard.channels = static_cast<uint8_t>(
        DefaultChannels(context.model, collective, bytes, standard.algorithm, standard.protocol));
    AddRow(context, {context.topology, collective, bytes, standard, true, {}}, file);
    for (const auto& config : EnumerateConfigs(NcclConfigs(collective), context.model.fabric.max_channels)) {
      AddRow(context, {context.topology, collective, bytes, config, false, {}}, file);
    }
  }

 private:
  void AddRow(const MeasurementContext& context, Measurement row, MeasurementFile& file) {
    const double cost = EstimateCost(context.model, row.collective, row.bytes, row.config);
    if (cost <= 0) return;
    std::normal_distribution<double> noise(0, settings_.noise);
    for (int i = 0; i < settings_.repeats; ++i) {
      const double factor = HiddenFactor(row.config, row.bytes, settings_.hidden_factor);
      row.microseconds.push_back(static_cast<float>(cost * factor * std::exp(noise(random_))));
    }
    file.rows.push_back(std::move(row));
  }

  const SyntheticSweep settings_;
  std::mt19937_64 random_;
};

}  // namespace

MeasurementFile MakeSweep(const SyntheticSweep& settings) {
  MeasurementFile file{"synthetic", "none", "tests", {}, {}};
  Sweeper sweeper(settings);
  for (int topology = 0; topology < settings.topologies; ++topology) {
    file.contexts.push_back(ContextOf(topology));
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
      for (uint64_t bytes = 1 << 12; bytes <= (1 << 24); bytes *= 2) {
        sweeper.AddKey(file.contexts.back(), collective, bytes, file);
      }
    }
  }
  return file;
}

}  // namespace dynamiccl::test
