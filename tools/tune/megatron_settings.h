// SPDX-License-Identifier: Apache-2.0
// Settings of Megatron-LM's own data parallelism: "megatron.ddp_bucket_size", "megatron.overlap_grad_reduce"
// and "megatron.overlap_param_gather". Megatron-LM reads no settings file, so the command that starts it gets
// them as flags. The names of the flags are those of core_v0.8.0 to core_v0.19.0.
#pragma once

#include <string>
#include <vector>

#include "tools/tune/candidates.h"
#include "tools/tune/trainer_settings.h"

namespace dynamiccl {

// True if the command starts a script of Megatron-LM: it has the flags --micro-batch-size and --num-layers,
// or a script called pretrain_*.py.
bool StartsMegatron(const CommandWords& command);

// Returns the command with the values of `values` for the trainer or for Megatron-LM in place of its own
// options. A command that starts neither stays as it is.
CommandWords WithValues(const CommandWords& command, const FrameworkValues& values);

// Adds the settings to try for a job of Megatron-LM with these flags on so many ranks, or says in `left_out`
// why there are none.
void AddMegatronCandidates(const CommandWords& command, int ranks, CandidateList& list);

// The receipts of all settings of a run. Those of Megatron-LM are judged by the flags in `command`, the
// command that was started, and by the recorded sums of gradients; the other settings are judged as
// ReceiptsOfWatched does.
std::vector<SettingReceipt> ReceiptsOfCommand(const FrameworkValues& asked, const CommandWords& command,
                                              const WatchedRun& run);

}  // namespace dynamiccl
