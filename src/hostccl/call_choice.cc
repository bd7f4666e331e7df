// SPDX-License-Identifier: Apache-2.0
// Reads a program's ncclCollConfig_t. See call_choice.h.
#include "src/hostccl/call_choice.h"

#include <algorithm>
#include <cstring>

namespace dynamiccl::hostccl {
namespace {

// All bits that ncclCollConfig_t's CTAPolicy may have.
constexpr int kCtaPolicies = NCCL_CTA_POLICY_DEFAULT | NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;

// Checks the members whose values NCCL checks before it uses the structure.
Status CheckValues(const ncclCollConfig_t& config) {
  if (config.magic != NCCL_API_MAGIC) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "ncclCollConfig_t was not initialised with NCCL_COLLCONFIG_INITIALIZER (magic {:#x})",
                     config.magic);
  }
  if (config.forceAlgSelection != 0 && config.forceAlgSelection != 1) {
    return MakeError(ErrorKind::kInvalidArgument, "ncclCollConfig_t: forceAlgSelection {} is neither 0 nor 1",
                     config.forceAlgSelection);
  }
  const bool policy_set = config.CTAPolicy != NCCL_CONFIG_UNDEF_INT;
  if (policy_set && (config.CTAPolicy < 0 || config.CTAPolicy > kCtaPolicies)) {
    return MakeError(ErrorKind::kInvalidArgument, "ncclCollConfig_t: CTAPolicy {} is not in 0 to {}",
                     config.CTAPolicy, kCtaPolicies);
  }
  return {};
}

// Refuses a forced selection that names only symmetric kernels, because hostccl has none.
Status ReadSelection(const ncclCollConfig_t& config, Collective collective, CallChoice& choice) {
  if (config.algSelection == nullptr || *config.algSelection == '\0') return {};
  choice.isolated = true;
  const auto selection = ParseAlgorithmSelection(config.algSelection, collective);
  const bool says_something = selection && selection->configs.any();
  if (says_something) choice.selection = selection->configs;
  if (says_something || !choice.forced) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "algSelection \"{}\" cannot be honoured for {}{}",
                            config.algSelection, Name(collective),
                            selection && selection->symmetric ? ": hostccl has no symmetric kernels" : ""),
                  "names are TREE_LL ... PAT_SIMPLE; forceAlgSelection = 0 allows another choice");
}

// Returns a limit that the program set, or 0 if it set none.
int Limit(int value) {
  return value == NCCL_CONFIG_UNDEF_INT ? 0 : std::max(0, value);
}

}  // namespace

Result<CallChoice> ReadCallConfig(const ncclCollConfig_t* config, Collective collective) {
  CallChoice choice;
  if (config == nullptr) return choice;
  ncclCollConfig_t read = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  read.magic = 0;
  std::memcpy(static_cast<void*>(&read), config, std::min(config->size, sizeof(read)));
  DYNAMICCL_CHECK_OK(CheckValues(read));
  choice.forced = read.forceAlgSelection == 1;
  choice.min_channels = Limit(read.minCTAs);
  choice.max_channels = Limit(read.maxCTAs);
  choice.user_tag = read.userProfilerTag;
  choice.launch_event = read.launchCompletionEvent;
  const auto set = [](int value) { return value != NCCL_CONFIG_UNDEF_INT; };
  choice.isolated = set(read.minCTAs) || set(read.maxCTAs) || set(read.nvlsCTAs) || set(read.CTAPolicy) ||
                    read.launchCompletionEvent != nullptr;
  DYNAMICCL_CHECK_OK(ReadSelection(read, collective, choice));
  return choice;
}

ConfigMask Selected(const CallChoice& choice, const ConfigMask& allowed, bool pinned) {
  return choice.selection.none() || pinned ? allowed : allowed & choice.selection;
}

int ChannelsWithin(const CallChoice& choice, int channels, int communicator_channels) {
  if (choice.max_channels > 0) channels = std::min(channels, choice.max_channels);
  return std::clamp(std::max(channels, choice.min_channels), 1, communicator_channels);
}

}  // namespace dynamiccl::hostccl
