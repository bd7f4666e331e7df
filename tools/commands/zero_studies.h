// SPDX-License-Identifier: Apache-2.0
// Commands of `dynamiccl zero` that start several runs of the trainer and print one table.
#pragma once

#include <string>

#include "tools/command_line.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

// `dynamiccl zero tradeoffs` and `dynamiccl zero capped`.
Result<int> ZeroTradeoffs(CommandLine& line);
Result<int> ZeroCapped(CommandLine& line);

// What both are told.
struct ZeroStudyOptions {
  LaunchOptions launch;
  std::string data;
  std::string dtype = "fp32";
  int64_t batch = 8;
  int64_t sequence = 128;
  std::string json;
};

// Registers them on a subcommand `name`, which is returned. The caller may change `options` beforehand.
CLI::App* AddZeroStudy(CommandLine& line, const char* name, const char* sentence, ZeroStudyOptions& options);
Result<TrainerRuns> OpenTrainerRuns(ZeroStudyOptions& options, CommandLine& line);
// Options of every run that both commands hand on.
Result<std::vector<std::string>> CommonTrainerOptions(const ZeroStudyOptions& options);
// Prints the table; with --json writes {schema, command, machine-readable rows} there.
Result<int> PrintStudy(const ZeroStudyOptions& options, const CommandLine& line, const std::string& table,
                       Json rows);

}  // namespace dynamiccl
