// SPDX-License-Identifier: Apache-2.0
// Measures what the agents cost inside a job: nanoseconds of each part of the structure agent, with warm and
// with cold caches, and microseconds of a choice of config.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <vector>

#include "benchmarks/inference_parts.h"
#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"

namespace dynamiccl {
namespace {

// Number of rounds over all choices.
constexpr int kRounds = 31;

struct Figures {
  VectorSet set = VectorSet::kPortable;
  std::vector<PartCost> parts;
  double choice_us = 0, choice_worst_us = 0;
};

const char* NameOf(VectorSet set) {
  return set == VectorSet::kPortable ? "portable" : "avx2";
}

void FillTables(PolicyTensors& tensors) {
  for (int i = 0; i < kTableEntries; ++i) {
    const double x = (i - kTableEntries / 2) / static_cast<double>(1 << kTableFractionBits);
    tensors.sigmoid_table[i] = static_cast<int16_t>(std::lround(32767 / (1 + std::exp(-x))));
    tensors.tanh_table[i] = static_cast<int16_t>(std::lround(kTokenOne * std::tanh(x)));
  }
}

// Returns a policy with small random weights. Like a trained network, such a network forgets, so it returns
// to the same states when calls repeat.
std::unique_ptr<const Policy> MakePolicy() {
  auto policy = std::make_unique<Policy>();
  std::mt19937 random(1);
  const auto fill = [&random](auto& array) {
    for (auto& row : array) {
      for (auto& weight : row) weight = static_cast<int16_t>(static_cast<int>(random() % 501) - 250);
    }
  };
  fill(policy->tensors.gate_weights);
  fill(policy->tensors.head_weights);
  for (int network = 0; network < kEnsemble; ++network) {
    fill(policy->tensors.config_weights_1[network]);
    fill(policy->tensors.config_weights_2[network]);
  }
  FillTables(policy->tensors);
  policy->tensors.structure = {11, 11, 4096, 4096, 4096, 8, 1 << 16, 256};
  policy->tensors.config = {{12, 12, 12}, 2795};
  std::fill_n(policy->tensors.domain_min, kConfigInputs, int16_t{-32768});
  std::fill_n(policy->tensors.domain_max, kConfigInputs, int16_t{32767});
  return policy;
}

void MeasureChoices(const Policy& policy, Figures& figures) {
  CostModelInput input;
  input.fabric = {8, 2, 8, {1.5, 20}, {12, 2.5}};
  input.constants = NcclHopperConstants(2);
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    for (int collective = 0; collective < kTunableCollectives; ++collective) {
      const auto which = static_cast<Collective>(collective);
      for (uint64_t bytes = 1 << 10; bytes < (1 << 30); bytes *= 4) {
        const int64_t start = MonotonicNanoseconds();
        ChooseConfig(policy, input, {which, bytes, NcclConfigs(which)});
        times.push_back(static_cast<double>(MonotonicNanoseconds() - start) * 1e-3);
      }
    }
  }
  figures.choice_us = Quantile(times, 0.5);
  figures.choice_worst_us = Quantile(times, 0.99);
}

nlohmann::ordered_json ToJson(const PartCost& cost) {
  return {{"part", cost.part},
          {"warm_ns", {{"median", cost.warm_median}, {"p25", cost.warm_low}, {"p75", cost.warm_high}}},
          {"cold_ns", {{"median", cost.cold_median}, {"p95", cost.cold_p95}}}};
}

void PrintJson(const Figures& figures) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const PartCost& cost : figures.parts) parts.push_back(ToJson(cost));
  const nlohmann::ordered_json object = {{"schema", 1},
                                         {"set", NameOf(figures.set)},
                                         {"parts", std::move(parts)},
                                         {"choice_p50_us", figures.choice_us},
                                         {"choice_p99_us", figures.choice_worst_us}};
  fmt::print("{}\n", object.dump());
}

void Print(const Figures& figures) {
  fmt::print("structure agent, {}, ns{:>26}{:>16}{:>8}{:>8}\n", NameOf(figures.set), "warm", "(quarters)",
             "cold", "p95");
  for (const PartCost& cost : figures.parts) {
    fmt::print("{:<36}{:>10.1f}{:>16}{:>8.0f}{:>8.0f}\n", cost.part, cost.warm_median,
               fmt::format("({:.1f} to {:.1f})", cost.warm_low, cost.warm_high), cost.cold_median,
               cost.cold_p95);
  }
  fmt::print("choice of a config, 8 channels: {:.1f} us (p99 {:.1f})\n", figures.choice_us,
             figures.choice_worst_us);
}

// Returns the instruction set of this name, or the best one of this machine if the name is empty. Returns
// nothing if this machine does not have the named set.
std::optional<VectorSet> SetNamed(const std::string& name) {
  std::optional<VectorSet> found;
  for (const VectorSet set : kVectorSets) {
    if (Runs(set) && (name.empty() || name == NameOf(set))) found = set;
  }
  return found;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  CLI::App app{"Measures the agents' inference.", "inference_bench"};
  std::string path;
  std::string set;
  bool json = false;
  app.add_option("--policy", path, "Policy file to measure with; default: random weights.");
  app.add_option("--set", set, "Instructions: portable or avx2; default: the best that run.")
      ->check(CLI::IsMember({"portable", "avx2"}));
  app.add_flag("--json", json, "Prints one JSON object.");
  CLI11_PARSE(app, argc, argv);
  std::unique_ptr<const dynamiccl::Policy> policy;
  if (path.empty()) {
    policy = dynamiccl::MakePolicy();
  } else {
    auto read = dynamiccl::ReadPolicyFile(path);
    if (!read) {
      std::fputs(dynamiccl::Describe(read.error()).c_str(), stderr);
      return 2;
    }
    policy = std::move(*read);
  }
  const auto named = dynamiccl::SetNamed(set);
  if (!named) {
    std::fputs("this machine does not run --set avx2: leave it out\n", stderr);
    return 2;
  }
  dynamiccl::Figures figures;
  figures.set = *named;
  figures.parts = dynamiccl::MeasureInferenceParts(*policy, figures.set);
  dynamiccl::MeasureChoices(*policy, figures);
  json ? dynamiccl::PrintJson(figures) : dynamiccl::Print(figures);
  return 0;
}
