// SPDX-License-Identifier: Apache-2.0
// What the agents cost inside a job: nanoseconds of a step of the structure LSTM, warm and with cold caches,
// and microseconds of a choice of config.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "src/base/clock.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {
namespace {

constexpr int kRounds = 31;           // medians over these
constexpr int kStepsARound = 20'000;  // warm: a round takes about 5 ms
constexpr int kColdSteps = 400;
// Larger than any last-level cache that a core gets for itself.
constexpr size_t kEvictBytes = 64 << 20;

struct Figures {
  double step_warm_ns = 0;
  double step_cold_p50_ns = 0, step_cold_p95_ns = 0;
  double choice_us = 0, choice_worst_us = 0;
};

template <typename T>
T Quantile(std::vector<T> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// The program's own policy: weights are random, which changes no time.
std::unique_ptr<const Policy> MakePolicy() {
  auto policy = std::make_unique<Policy>();
  std::mt19937 random(1);
  const auto fill = [&random](auto& array) {
    for (auto& row : array) {
      for (auto& weight : row) weight = static_cast<int16_t>(static_cast<int>(random() % 4001) - 2000);
    }
  };
  fill(policy->tensors.gate_weights);
  fill(policy->tensors.head_weights);
  for (int network = 0; network < kEnsemble; ++network) {
    fill(policy->tensors.config_weights_1[network]);
    fill(policy->tensors.config_weights_2[network]);
  }
  policy->tensors.structure = {11, 11, 4096, 4096, 4096, 8, 1 << 16, 256};
  policy->tensors.config = {{12, 12, 12}, 2795};
  std::fill_n(policy->tensors.domain_min, kConfigInputs, int16_t{-32768});
  std::fill_n(policy->tensors.domain_max, kConfigInputs, int16_t{32767});
  return policy;
}

std::vector<CollectiveCall> SomeCalls() {
  std::mt19937_64 random(2);
  std::vector<CollectiveCall> calls(256);
  for (CollectiveCall& call : calls) {
    call.collective = static_cast<Collective>(random() % kTunableCollectives);
    call.bytes = random() >> (24 + random() % 36);
    call.n_ranks = 8;
  }
  return calls;
}

void MeasureSteps(const Policy& policy, Figures& figures) {
  const std::vector<CollectiveCall> calls = SomeCalls();
  StructureTrigger trigger(policy);
  std::vector<double> warm, cold;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t start = MonotonicNanoseconds();
    for (size_t i = 0; i < kStepsARound; ++i) trigger.Step(calls[i % calls.size()]);
    warm.push_back(static_cast<double>(MonotonicNanoseconds() - start) / kStepsARound);
  }
  std::vector<char> other(kEvictBytes);
  for (size_t i = 0; i < kColdSteps; ++i) {
    // Between two calls a job touches its own data.
    for (size_t byte = 0; byte < other.size(); byte += 64) other[byte] = static_cast<char>(other[byte] + 1);
    const int64_t start = MonotonicNanoseconds();
    trigger.Step(calls[i % calls.size()]);
    cold.push_back(static_cast<double>(MonotonicNanoseconds() - start));
  }
  figures.step_warm_ns = Quantile(warm, 0.5);
  figures.step_cold_p50_ns = Quantile(cold, 0.5);
  figures.step_cold_p95_ns = Quantile(cold, 0.95);
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

void Print(const Figures& figures, bool json) {
  if (json) {
    const nlohmann::ordered_json object = {{"lstm_step_warm_ns", figures.step_warm_ns},
                                           {"lstm_step_cold_p50_ns", figures.step_cold_p50_ns},
                                           {"lstm_step_cold_p95_ns", figures.step_cold_p95_ns},
                                           {"choice_p50_us", figures.choice_us},
                                           {"choice_p99_us", figures.choice_worst_us}};
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("step of the structure LSTM: {:.0f} ns warm; {:.0f} ns with cold caches (p95 {:.0f})\n",
             figures.step_warm_ns, figures.step_cold_p50_ns, figures.step_cold_p95_ns);
  fmt::print("choice of a config, 8 channels: {:.1f} us (p99 {:.1f})\n", figures.choice_us,
             figures.choice_worst_us);
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  CLI::App app{"Measures the agents' inference.", "inference_bench"};
  std::string path;
  bool json = false;
  app.add_option("--policy", path, "Policy file to measure with; default: random weights.");
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
  dynamiccl::Figures figures;
  dynamiccl::MeasureSteps(*policy, figures);
  dynamiccl::MeasureChoices(*policy, figures);
  dynamiccl::Print(figures, json);
  return 0;
}
