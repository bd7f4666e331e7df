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

// Looks at the options for which `given` is true and that have no effect with these settings. An option that
// states what happens anyway is fine. `translated` has the options that a file of another program stands for,
// with their places in the file: for each of these that is void this returns a sentence. If any other is
// void, this returns an error with the reason and a hint.
Result<std::vector<std::string>> NotesOfVoidOptions(const std::function<bool(const char* option)>& given,
                                                    const std::map<std::string, std::string>& translated,
                                                    const TrainingSettings& settings);

}  // namespace dynamiccl::zero
