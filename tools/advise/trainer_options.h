// SPDX-License-Identifier: Apache-2.0
// Converts options of the project's own trainer into settings of its generator, and back.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"

namespace dynamiccl {

// Returns the job that `dynamiccl-zero train` runs with these options on `ranks` ranks. Options that change
// no collective are ignored. kUnsupported for options on which there is no advice: tensor parallelism, a
// batch size that follows the free memory, and settings files.
Result<AdvisedJob> TrainerJobOf(const std::vector<std::string>& options, int ranks);

// The options in which two jobs of the trainer differ, with the values of `changed`.
std::vector<std::string> OptionsFor(const AdvisedJob& base, const AdvisedJob& changed);

// `options` with `changes` in place of the options of the same name.
std::vector<std::string> Replaced(const std::vector<std::string>& options,
                                  const std::vector<std::string>& changes);

}  // namespace dynamiccl
