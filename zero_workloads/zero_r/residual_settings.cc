// SPDX-License-Identifier: Apache-2.0
// Checks of the ZeRO-R options, each with a hint that names a valid choice.
#include "zero_workloads/zero_r/residual_settings.h"

#include <algorithm>

#include "zero_workloads/estimate/memory_estimate.h"
#include "zero_workloads/estimate/paper_figures.h"

namespace dynamiccl::zero {
namespace {

// Bytes. Every model takes more. The limit detects a number whose unit was forgotten.
constexpr int64_t kLeastMemoryCap = 1 << 20;

Status Reject(std::string message, std::string hint) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}", message), std::move(hint));
}

Status Contradiction(const PaperConfig& config, const std::string& says, const std::string& option) {
  return Reject(fmt::format("--paper-config {} is {}: {} contradicts it", config.name, says, option),
                "leave one of the two out");
}

}  // namespace

std::optional<Checkpoints> ResidualSettings::checkpoints() const {
  return ParseCheckpoints(activation_checkpoints);
}

std::string ResidualSettings::Canonical() const {
  return fmt::format("activation_checkpoints={} activation_prefetch={} contiguous_pools={}",
                     activation_checkpoints, activation_prefetch, contiguous_pools);
}

Status Validate(const ResidualSettings& settings, int tensor_parallel) {
  const std::string& asked = settings.activation_checkpoints;
  if (asked != "auto" && !settings.checkpoints()) {
    return Reject(fmt::format("--activation-checkpoints {} is none", asked),
                  "none, full, partitioned, partitioned_cpu or auto");
  }
  if (settings.checkpoints() == Checkpoints::kPartitioned && tensor_parallel == 1) {
    return Reject(
        "--activation-checkpoints partitioned divides checkpoints over tensor-parallel ranks, and there is 1",
        "full keeps them whole; --tensor-parallel 2 gives ranks to divide them over");
  }
  if (settings.memory_cap != 0 && settings.memory_cap < kLeastMemoryCap) {
    return Reject(fmt::format("--memory-cap {} bytes is less than 1 MiB", settings.memory_cap),
                  "K, M and G are understood: --memory-cap 64M");
  }
  if (settings.memory_allocator != "first_fit" && settings.memory_allocator != "caching") {
    return Reject(fmt::format("--memory-allocator {} is none", settings.memory_allocator),
                  "first_fit or caching");
  }
  return {};
}

Status TakePaperConfig(const std::function<bool(const char* option)>& given, int64_t bucket_bytes, int* stage,
                       ResidualSettings* residual) {
  if (residual->config.empty()) return {};
  const auto& configs = PaperConfigs();
  const auto config = std::find_if(configs.begin(), configs.end(),
                                   [&](const PaperConfig& one) { return one.name == residual->config; });
  if (config == configs.end())
    return Reject(fmt::format("--paper-config {} is none", residual->config), "C1, C2, C3, C4 or C5");
  if (given("--stage") && *stage != config->stage)
    return Contradiction(*config, fmt::format("stage {}", config->stage), fmt::format("--stage {}", *stage));
  if (given("--activation-checkpoints") && residual->checkpoints() != config->checkpoints) {
    return Contradiction(*config, fmt::format("--activation-checkpoints {}", Name(config->checkpoints)),
                         "--activation-checkpoints " + residual->activation_checkpoints);
  }
  if (given("--contiguous-pools") && !residual->contiguous_pools)
    return Contradiction(*config, "contiguous pools (M_D)", "--no-contiguous-pools");
  if (bucket_bytes == kOneBucketForAll)
    return Contradiction(*config, "buckets of constant size (C_B)", "--bucket-bytes all");
  *stage = config->stage;
  residual->activation_checkpoints = Name(config->checkpoints);
  residual->contiguous_pools = true;
  return {};
}

}  // namespace dynamiccl::zero
