// SPDX-License-Identifier: Apache-2.0
// Converts options of the project's own trainer into settings of the generator that lists the trainer's
// collectives, and back.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"

namespace dynamiccl {

// Returns the job that `dynamiccl-zero train` runs with these options on `ranks` ranks. Options that change
// no collective are ignored. The error kUnsupported names an option on which no advice is given: tensor
// parallelism, a batch size that follows the free memory, or a settings file.
Result<AdvisedJob> TrainerJobOf(const std::vector<std::string>& options, int ranks);

// The options that differ between two jobs of the trainer, with the values that `changed` has.
std::vector<std::string> OptionsFor(const AdvisedJob& base, const AdvisedJob& changed);

// Returns `options`, with each option that `changes` names replaced by the one in `changes`.
std::vector<std::string> Replaced(const std::vector<std::string>& options,
                                  const std::vector<std::string>& changes);

}  // namespace dynamiccl
