// SPDX-License-Identifier: Apache-2.0
// The options of `dynamiccl bench`: those of nccl-tests with the same letters and meaning, and further ones
// of this command.
#pragma once

#include <CLI/App.hpp>
#include <map>
#include <string>
#include <vector>

#include "tools/bench/collective_bench.h"
#include "tools/launch_options.h"

namespace dynamiccl {

// The options as typed; UnderstandBench checks them and derives what they mean. The struct has one member for
// each letter of nccl-tests, so that the two can be compared.
struct BenchCommandOptions {
  std::vector<std::string> collectives;
  std::string begin = "32M";
  std::string end = "32M";
  std::string step = "1M";
  double factor = 0;
  std::string type = "float";
  std::string op = "sum";
  std::string root = "0";
  std::vector<int> ranks{2};
  int threads = 1;
  int registration = 0;
  int average = 1;
  int blocking = 0;
  int parallel_init = 1;
  int null_stream = 0;
  int timeout_s = 0;
  int cpu_time = 0;
  int timestamps = 0;
  int memory = 0;
  int per_iteration = 0;
  int cta_policy = -1;
  std::string json;
  std::string background;
  // Options of nccl-tests that have no meaning in this command, by name, with the values that the user gave.
  std::map<std::string, std::string> refused;
  // Options that are numbers and need no interpretation.
  BenchOptions options;
  LaunchOptions launch;

  // The members from here on are for --against, the comparison with other libraries.
  std::string against;
  std::string choice = "default";
  std::string python = "python3";
  std::string bind = "core";
  double burst_ms = 40;
  // The value of --control, which the command gives only to the ranks that it starts for a comparison.
  std::string control;

  int total_ranks() const { return ranks.front() * threads; }
};

// Registers all options of the command. `given` must outlive the parsing, because CLI11 writes into it.
void RegisterBenchOptions(CLI::App& app, BenchCommandOptions& given);

// The benchmark's options for the first collective and the sizes that -b, -e, -i and -f span. An error says
// which option is wrong and what to write.
Result<BenchOptions> UnderstandBench(const BenchCommandOptions& given);
// The named collectives; an error for an unknown name.
Result<std::vector<TestedCollective>> CollectivesOf(const BenchCommandOptions& given);

// Runs `dynamiccl bench --against`, which times other libraries in turns with hostccl. Starts every side,
// measures every cell, prints tables and writes JSON. Returns the command's exit code.
Result<int> RunAgainst(const BenchCommandOptions& given, const BenchOptions& options);

// Runs one rank of the side hostccl in a comparison of libraries (--against). RunAgainst starts this process
// with the option --control.
Result<int> RunComparedRank(const BenchCommandOptions& given);

}  // namespace dynamiccl
