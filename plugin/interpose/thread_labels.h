// SPDX-License-Identifier: Apache-2.0
// Holds what a program reports about itself through src/annotate/phase_marker.h: the phase and role of the
// calls that a thread issues next, the samples of a step, and the free device memory. Each function runs on
// the program's thread and never fails. All but roles are ignored while nothing watches the process's calls.
#pragma once

namespace dynamiccl {

// Implements dynamicclMarkPhase: sets the calling thread's labels of phase and stage, and records the step.
// Numbers that this build does not know become "unknown".
void MarkPhaseOfThisThread(int phase, int zero_stage, long long step) noexcept;
// Implements dynamicclMarkRole: sets the calling thread's label of the role.
void MarkRoleOfThisThread(int role) noexcept;
// Implements dynamicclMarkMemory: records the sizes in bytes, and how short of memory the device is.
// Impossible sizes are ignored.
void MarkMemoryOfThisProcess(long long free_bytes, long long total_bytes) noexcept;
// Implements dynamicclMarkSamples: records the number of samples. Numbers below 1 are ignored.
void MarkSamplesOfThisProcess(long long samples) noexcept;

}  // namespace dynamiccl
