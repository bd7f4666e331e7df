// SPDX-License-Identifier: Apache-2.0
// Commands of the lab that start several runs of the trainer and print one table: tradeoffs and capped.
#pragma once

#include <string>

#include "tools/command_line.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

// Options that both commands share.
struct TrainerStudyOptions {
  LaunchOptions launch;
  std::string data;
  std::string dtype = "fp32";
  int64_t batch = 8;
  int64_t sequence = 128;
  std::string json;
};

// The caller may change `options` beforehand.
void RegisterTrainerStudy(CLI::App& app, TrainerStudyOptions& options);
// Finds the trainer and prepares its runs.
Result<TrainerRuns> OpenTrainerRuns(TrainerStudyOptions& options, CommandLine& line);
// The trainer's options for the settings that both commands share.
Result<std::vector<std::string>> CommonTrainerOptions(const TrainerStudyOptions& options);
// Prints the table. With --json also writes {schema, command, rows} to that file.
Result<int> PrintStudy(const TrainerStudyOptions& options, const CommandLine& line, const std::string& table,
                       Json rows);

}  // namespace dynamiccl
