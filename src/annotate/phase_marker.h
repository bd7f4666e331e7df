// SPDX-License-Identifier: Apache-2.0
// Lets a program tell DynamICCL which part of a training step it is in, how many samples the step processes
// and how much memory is left. The header needs no library: its symbols are weak, so a call costs one compare
// and does nothing if DynamICCL is not loaded. Markers appear in traces and metrics. No decision depends on
// them, except that rules may name a level of memory pressure on which all ranks agreed
// (docs/formats/override_rules.md).
//
//   dynamiccl::annotate::MarkPhase(DYNAMICCL_PHASE_BACKWARD, /*zero_stage=*/2, step);
//   dynamiccl::annotate::MarkRole(DYNAMICCL_ROLE_GRADIENT_REDUCE);
//   ncclReduceScatter(...);
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// The numbers are those of Phase and Role in src/collective/role.h. A marker holds for the calls that the
// same thread issues until its next marker.
typedef enum {
  DYNAMICCL_PHASE_UNKNOWN = 0,
  DYNAMICCL_PHASE_FORWARD = 1,
  DYNAMICCL_PHASE_BACKWARD = 2,
  DYNAMICCL_PHASE_OPTIMIZER = 3,
  DYNAMICCL_PHASE_OTHER = 4
} dynamicclPhase_t;

typedef enum {
  DYNAMICCL_ROLE_UNKNOWN = 0,
  DYNAMICCL_ROLE_PARAMETER_GATHER = 1,
  DYNAMICCL_ROLE_GRADIENT_REDUCE = 2,
  DYNAMICCL_ROLE_POST_STEP_GATHER = 3,
  DYNAMICCL_ROLE_ACTIVATION = 4,
  DYNAMICCL_ROLE_SCALAR = 5,
  DYNAMICCL_ROLE_OTHER = 6
} dynamicclRole_t;

// Sets phase, ZeRO stage and training step of the calls that this thread issues next. `zero_stage` is 0 to 3,
// or 4 for unknown; `step` counts from 0.
__attribute__((weak)) void dynamicclMarkPhase(dynamicclPhase_t phase, int zero_stage, long long step);
// Sets the role of the calls that this thread issues next.
__attribute__((weak)) void dynamicclMarkRole(dynamicclRole_t role);
// Tells DynamICCL the free and the total bytes of this rank's device. Once a training step is often enough.
__attribute__((weak)) void dynamicclMarkMemory(long long free_bytes, long long total_bytes);
// States how many samples this rank processes in the training step that begins now. A report then gives the
// time per sample. Unlike the time of a step, it stays comparable if the batch grows.
__attribute__((weak)) void dynamicclMarkSamples(long long samples);

#ifdef __cplusplus
}

namespace dynamiccl::annotate {

// Calls dynamicclMarkPhase for C++ programs. Does nothing if DynamICCL is not loaded.
inline void MarkPhase(dynamicclPhase_t phase, int zero_stage, long long step) {
  if (dynamicclMarkPhase != nullptr) dynamicclMarkPhase(phase, zero_stage, step);
}

inline void MarkRole(dynamicclRole_t role) {
  if (dynamicclMarkRole != nullptr) dynamicclMarkRole(role);
}

inline void MarkMemory(long long free_bytes, long long total_bytes) {
  if (dynamicclMarkMemory != nullptr) dynamicclMarkMemory(free_bytes, total_bytes);
}

inline void MarkSamples(long long samples) {
  if (dynamicclMarkSamples != nullptr) dynamicclMarkSamples(samples);
}

}  // namespace dynamiccl::annotate
#endif
