// SPDX-License-Identifier: Apache-2.0
// Finds options of `train` that another option makes void, so that they are not ignored without a word.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// Examines the options for which `given` is true. An option is void if it has no effect with these settings,
// unless it states what happens anyway. Returns a sentence for each void option in `translated`, which has
// the options that were translated from a file of another program, with their places in that file. Any other
// void option is an error, with the reason and a hint.
Result<std::vector<std::string>> NotesOfVoidOptions(const std::function<bool(const char* option)>& given,
                                                    const std::map<std::string, std::string>& translated,
                                                    const TrainingSettings& settings);

}  // namespace dynamiccl::zero
