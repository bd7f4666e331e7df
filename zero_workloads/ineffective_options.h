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

// Examines the options for which `given` is true. An option is ineffective if the other settings make it
// meaningless, unless its value states what happens anyway. `translated` maps options that were translated
// from a file of another program to their places in that file. Returns a sentence for each ineffective option
// in `translated`. Any other ineffective option is an error, with the reason and a hint.
Result<std::vector<std::string>> NotesOfIneffectiveOptions(
    const std::function<bool(const char* option)>& given,
    const std::map<std::string, std::string>& translated, const TrainingSettings& settings);

}  // namespace dynamiccl::zero
