// SPDX-License-Identifier: Apache-2.0
// Which activation checkpoints a run has: those it was told, or with --activation-checkpoints auto those that
// its model, its memory and this machine's speeds ask for.
#pragma once

#include "zero_workloads/training_settings.h"
#include "zero_workloads/zero_r/activation_store.h"
#include "zero_workloads/zero_r/measured_hardware.h"

namespace dynamiccl::zero {

// An error where auto cannot know how much memory a rank has.
Status CheckMemoryIsKnown(const ResidualSettings& residual);

// Every rank calls it and gets the same. With auto, `reason` says why; else it is empty.
CheckpointChoice ResolveCheckpoints(const TrainingSettings& settings, const MeasuredGroups& groups,
                                    const at::TensorOptions& options);

// Of a run with `rows` sequences a rank and micro-step.
ActivationStoreSettings StoreSettingsOf(const TrainingSettings& settings, Checkpoints checkpoints,
                                        int64_t rows, ProcessGroup* tensor, const at::TensorOptions& options);

}  // namespace dynamiccl::zero
