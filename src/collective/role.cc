// SPDX-License-Identifier: Apache-2.0
// Tables of names, indexed by the enums' numbers. See role.h.
#include "src/collective/role.h"

#include <algorithm>
#include <iterator>

namespace dynamiccl {
namespace {

constexpr std::string_view kRoleNames[kRoles] = {
    "unknown",    "parameter_gather", "gradient_reduce", "post_step_gather",
    "activation", "scalar",           "other",           "backward_gather"};
constexpr std::string_view kPhaseNames[kPhases] = {"unknown", "forward", "backward", "optimizer", "other"};
constexpr std::string_view kStageNames[kZeroStages] = {"0", "1", "2", "3", "unknown"};
constexpr std::string_view kPressureNames[kMemoryPressures] = {"low", "medium", "high", "unknown"};

template <typename E, size_t N>
std::optional<E> Find(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

template <typename E, size_t N>
std::string_view At(const std::string_view (&names)[N], E value) {
  const auto index = static_cast<size_t>(value);
  return index < N ? names[index] : names[0];
}

}  // namespace

std::string_view Name(Role role) {
  return At(kRoleNames, role);
}
std::string_view Name(Phase phase) {
  return At(kPhaseNames, phase);
}
std::string_view Name(ZeroStage stage) {
  return stage <= ZeroStage::kUnknown ? kStageNames[static_cast<size_t>(stage)] : "unknown";
}
std::string_view Name(Criticality criticality) {
  constexpr std::string_view kNames[kCriticalities] = {"unknown", "hidden", "partial", "exposed"};
  return kNames[static_cast<size_t>(criticality) % kCriticalities];
}
std::string_view Name(MemoryPressure pressure) {
  return kPressureNames[std::min(static_cast<size_t>(pressure), std::size(kPressureNames) - 1)];
}
std::optional<Role> ParseRole(std::string_view name) {
  return Find<Role>(kRoleNames, name);
}
std::optional<Phase> ParsePhase(std::string_view name) {
  return Find<Phase>(kPhaseNames, name);
}
std::optional<ZeroStage> ParseStage(std::string_view name) {
  return Find<ZeroStage>(kStageNames, name);
}
std::optional<MemoryPressure> ParseMemoryPressure(std::string_view name) {
  return Find<MemoryPressure>(kPressureNames, name);
}

}  // namespace dynamiccl
