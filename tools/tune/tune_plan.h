// SPDX-License-Identifier: Apache-2.0
// The text that identifies a tune in its journal (tune_journal.h).
#pragma once

#include <string>

#include "tools/launch/launch_plan.h"

namespace dynamiccl {

// Returns `options`, the command and the options of a tune as text, followed by hashes of the other things
// that decide step times: the scripts and configurations that the command names, the topology and the policy,
// and the variables of the environment that NCCL, DynamICCL, torch and their libraries read. Modules that a
// script imports are not looked at, nor other files, because the job may write them.
std::string TunePlan(const std::string& options, const std::vector<std::string>& command,
                     const RuntimeOptions& runtime);

}  // namespace dynamiccl
