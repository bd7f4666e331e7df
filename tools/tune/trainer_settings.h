// SPDX-License-Identifier: Apache-2.0
// Settings of the project's own trainer, `dynamiccl-zero train`: "zero.bucket_bytes", "zero.overlap" and
// "zero.prefetch". The trainer reads no settings file, so the command that starts it gets them as options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/tune/candidates.h"
#include "tools/tune/setting_receipt.h"

namespace dynamiccl {

using CommandWords = std::vector<std::string>;

// Returns the trainer's options in a command that starts the trainer: the words after `dynamiccl-zero train`
// or `dynamiccl zero`, which may follow those of a launcher such as torchrun. Nothing for other commands.
std::optional<CommandWords> TrainerOptionsIn(const CommandWords& command);

// Returns the command with each of the trainer's options that `values` has set to that value. Other options
// stay, and so does a command that does not start the trainer.
CommandWords WithTrainerValues(const CommandWords& command, const FrameworkValues& values);

// Returns the settings to try for a job of the trainer: sizes of its buckets, and overlap and prefetch where
// they make a difference.
std::vector<Candidate> TrainerCandidates(const AdvisedJob& job);

// Returns the receipts of all settings of a run. Those of the trainer are judged by the calls that it makes
// with the options in `command`, the command that was started; the other settings are judged as ReceiptsOf
// does.
std::vector<SettingReceipt> ReceiptsOfWatched(const FrameworkValues& asked, const CommandWords& command,
                                              const WatchedRun& run);

}  // namespace dynamiccl
