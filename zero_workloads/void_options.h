// SPDX-License-Identifier: Apache-2.0
// Refuses options of `train` that another option makes void, so that they are not ignored without a word.
#pragma once

#include <functional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// Returns an error with the reason and a hint if an option that was given has no effect with these settings.
// `given` says if the user gave the option of this name.
Status CheckNoOptionIsVoid(const std::function<bool(const char* option)>& given,
                           const TrainingSettings& settings);

}  // namespace dynamiccl::zero
