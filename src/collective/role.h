// SPDX-License-Identifier: Apache-2.0
// This file defines the purpose of a call in the program (role), the part of the training step in which the
// call stands (phase), its ZeRO stage, whether the program waits for the call (criticality), the state of the
// fabric (regime), and how short of memory a device is (memory pressure). A DecisionKey contains the
// recognised role, phase and stage: the policy's table reads the role, rules may read all three. Memory
// pressure is a part of a table version, and rules may read it too. Criticality and regime reach decisions
// only through a table version. The trainer's own labels of role, phase and stage are exact; they exist only
// in traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

// In bytes. An AllReduce of at most this size counts as a scalar, whatever its purpose. Overflow flags,
// norms, losses and short vectors of such values are smaller, and they do not grow with the model. Gradient
// buckets are far larger.
inline constexpr uint64_t kTinyBytes = 256;

// kUnknown means "not recognised with confidence". Decisions then use the generic row of the table.
enum class Role : uint8_t {
  kUnknown = 0,
  kParameterGather = 1,  // ZeRO-3: parameters before use, forward and backward
  kGradientReduce = 2,   // AllReduce or ReduceScatter of gradient buckets
  kPostStepGather = 3,   // ZeRO-1/2: updated parameters after the optimizer step
  kActivation = 4,       // tensor parallel, or P_a of ZeRO-R
  kScalar = 5,           // overflow flags, gradient norms, losses; see kTinyBytes
  kOther = 6,
  // A kParameterGather in the backward phase. This role is only recognised, never labelled. It gives forward
  // and backward gathers of one size separate choices.
  kBackwardGather = 7,
};
inline constexpr int kRoles = 8;
// The roles with smaller numbers can be labels by the trainer and are classes of the LSTM.
inline constexpr int kLabelledRoles = 7;

// The part of the training step in which the call was issued.
enum class Phase : uint8_t { kUnknown = 0, kForward = 1, kBackward = 2, kOptimizer = 3, kOther = 4 };
inline constexpr int kPhases = 5;

// The ZeRO stage of a call, as the LSTM recognised it or as the trainer labelled it.
enum class ZeroStage : uint8_t { kStage0 = 0, kStage1 = 1, kStage2 = 2, kStage3 = 3, kUnknown = 4 };
inline constexpr int kZeroStages = 5;

// Says how much of a key's communication time the program waits for, as measured, in three levels.
enum class Criticality : uint8_t { kUnknown = 0, kHidden = 1, kPartial = 2, kExposed = 3 };
inline constexpr int kCriticalities = 4;

// True if the latency of such calls is critical: they gather parameters, and the program waits for them
// before it can compute.
constexpr bool IsLatencyCritical(Role role, Criticality level) {
  return level == Criticality::kExposed && (role == Role::kParameterGather || role == Role::kBackwardGather);
}

// State of the fabric: normal, shared with other traffic, one link slow, or one rank late.
enum class Regime : uint8_t { kNormal = 0, kCongested = 1, kDegradedLink = 2, kStraggler = 3 };
inline constexpr int kRegimes = 4;

// Share of a device's memory that is free, in levels (memory_level.h). kUnknown: the ranks agreed on no
// level.
enum class MemoryPressure : uint8_t { kLow = 0, kMedium = 1, kHigh = 2, kUnknown = 3 };
inline constexpr int kMemoryPressures = 4;

// These return the names used in traces and reports, such as "gradient_reduce"; "unknown" for a number
// outside the enum.
std::string_view Name(Role role);
std::string_view Name(Phase phase);
std::string_view Name(ZeroStage stage);
std::string_view Name(Criticality criticality);
std::string_view Name(MemoryPressure pressure);
// These are the inverse of Name. The case of letters must match. They return nullopt for an unknown name.
std::optional<Role> ParseRole(std::string_view name);
std::optional<Phase> ParsePhase(std::string_view name);
std::optional<ZeroStage> ParseStage(std::string_view name);
std::optional<MemoryPressure> ParseMemoryPressure(std::string_view name);

}  // namespace dynamiccl
