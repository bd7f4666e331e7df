// SPDX-License-Identifier: Apache-2.0
// Settings of DeepSpeed's ZeRO stages 1 to 3: members of "zero_optimization" in its configuration, such as
// "deepspeed.reduce_bucket_size". The hook puts them into the copy that deepspeed.initialize gets.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/tune/candidates.h"
#include "tools/tune/judgement.h"

namespace dynamiccl {

// Returns the settings to try: sizes of buckets that make other calls than the job's own, and overlap.
std::vector<Candidate> DeepSpeedCandidates(const DeepSpeedReport& report);

// Judges a setting by the calls of a step.
Judgement JudgeDeepSpeed(const std::string& setting, const Json& asked, const DeepSpeedReport& report,
                         const RecordedStep& step);

// Returns the job as the simulator knows it, with the parameters and values that the hook reported.
Result<AdvisedJob> DeepSpeedJob(const DeepSpeedReport& report, const RecordedStep& step);

// Gives the simulated job the value of a setting, here without "deepspeed.". Returns false if the simulator
// does not know the setting; its calls then stay the same.
bool SetDeepSpeed(const std::string& name, const Json& value, AdvisedJob& job);

// The member of the configuration as a line for the user's own JSON file:
// "\"zero_optimization\": {\"reduce_bucket_size\": 5000000}". Empty without settings of DeepSpeed.
std::string DeepSpeedLines(const FrameworkValues& values);

}  // namespace dynamiccl
