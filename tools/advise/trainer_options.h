// SPDX-License-Identifier: Apache-2.0
// Options of the project's own trainer as settings of its generator, and back.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"

namespace dynamiccl {

// What `dynamiccl-zero train` makes of these options on so many ranks. Options that change no collective are
// skipped. kUnsupported: tensor parallelism, a batch that follows memory, and settings from files, which no
// advice is given for.
Result<AdvisedJob> TrainerJobOf(const std::vector<std::string>& options, int ranks);

// The options that differ between two jobs of the trainer, as they are given for `changed`.
std::vector<std::string> OptionsFor(const AdvisedJob& base, const AdvisedJob& changed);

// `options` with `changes` in place of what they say of the same.
std::vector<std::string> Replaced(const std::vector<std::string>& options,
                                  const std::vector<std::string>& changes);

}  // namespace dynamiccl
