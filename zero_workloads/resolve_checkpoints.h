// SPDX-License-Identifier: Apache-2.0
// Determines the activation checkpoints of a run: those that the user chose, or with --activation-checkpoints
// auto those that suit its model, its memory and the measured speed of the machine.
#pragma once

#include "zero_workloads/training_settings.h"
#include "zero_workloads/zero_r/activation_store.h"
#include "zero_workloads/zero_r/measured_hardware.h"

namespace dynamiccl::zero {

// Returns an error if auto was chosen and the memory of a rank is unknown.
Status CheckMemoryIsKnown(const ResidualSettings& residual);

// Every rank calls the function and gets the same answer. `reason` is empty unless the choice was automatic.
CheckpointChoice ResolveCheckpoints(const TrainingSettings& settings, const MeasuredGroups& groups,
                                    const at::TensorOptions& options);

// Returns the settings of the activation store for a run in which a rank computes `rows` sequences in each
// micro-step.
ActivationStoreSettings StoreSettingsOf(const TrainingSettings& settings, Checkpoints checkpoints,
                                        int64_t rows, ProcessGroup* tensor, const at::TensorOptions& options);

}  // namespace dynamiccl::zero
