// SPDX-License-Identifier: Apache-2.0
// Finds options of `train` that have no effect because of another option, so that none is ignored silently.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// Examines the options for which `given` is true. An option is ineffective if these settings make it
// meaningless, unless it states what happens anyway. Returns a sentence for each ineffective option in
// `translated`, which has the options that were translated from a file of another program, with their places
// in that file. Any other ineffective option is an error, with the reason and a hint.
Result<std::vector<std::string>> NotesOfIneffectiveOptions(
    const std::function<bool(const char* option)>& given,
    const std::map<std::string, std::string>& translated, const TrainingSettings& settings);

}  // namespace dynamiccl::zero
