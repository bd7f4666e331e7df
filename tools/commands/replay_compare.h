// SPDX-License-Identifier: Apache-2.0
// `dynamiccl replay --compare`: replays the same trace with NCCL's default, with the user's policy or rules,
// and with the best configs. The three take turns.
#pragma once

#include "tools/command_line.h"
#include "tools/commands/replay_options.h"
#include "tools/replay/simulated_replay.h"

namespace dynamiccl {

// Runs the comparison and returns the command's exit code.
Result<int> RunComparison(const CommandLine& line, const ReplayCommandOptions& given);

// Writes the times that rank 0 measured into the file `path`. The comparison that started this process reads
// the file.
Status WriteArmReport(const std::string& path, const std::string& library, const ReplayPlan& plan,
                      const ReplayResult& result);

// Labels an unlabelled trace if the launch has rules that name roles, phases or stages. The launch's policy
// recognises the labels; without a policy they are those of RecogniseSections.
Status RecogniseForRules(const RuntimeOptions& ours, Trace& trace);

// Reads rules and policy of a launch for the simulator; either path may be empty.
Result<Choosers> ChoosersOf(const std::string& rules, const std::string& policy);

}  // namespace dynamiccl
