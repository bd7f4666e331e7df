// SPDX-License-Identifier: Apache-2.0
// How a program may tell DynamICCL which part of a training step it is in, and how much memory is left.
// Header-only; the symbols are weak, so the calls cost one compare and do nothing when DynamICCL is not
// loaded. What is told goes into traces and metrics and nowhere else: decisions never see it.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Values as in src/collective/role.h. They hold for the calls that this thread issues until the next marker.
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

// `step` is the training step from 0, `zero_stage` 0 to 3 or 4 for unknown.
__attribute__((weak)) void dynamicclMarkPhase(dynamicclPhase_t phase, int zero_stage, long long step);
// Role of the calls that this thread issues next.
__attribute__((weak)) void dynamicclMarkRole(dynamicclRole_t role);
// Free and total memory of this rank's device, say once a step.
__attribute__((weak)) void dynamicclMarkMemory(long long free_bytes, long long total_bytes);

#ifdef __cplusplus
}

namespace dynamiccl::annotate {

inline void MarkPhase(dynamicclPhase_t phase, int zero_stage, long long step) {
  if (dynamicclMarkPhase != nullptr) dynamicclMarkPhase(phase, zero_stage, step);
}

inline void MarkRole(dynamicclRole_t role) {
  if (dynamicclMarkRole != nullptr) dynamicclMarkRole(role);
}

inline void MarkMemory(long long free_bytes, long long total_bytes) {
  if (dynamicclMarkMemory != nullptr) dynamicclMarkMemory(free_bytes, total_bytes);
}

}  // namespace dynamiccl::annotate
#endif
