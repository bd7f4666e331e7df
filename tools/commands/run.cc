// SPDX-License-Identifier: Apache-2.0
// `dynamiccl run`: a program under DynamICCL, its output untouched, at most five lines on standard error at
// the end.
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/command_table.h"
#include "tools/launch/launcher.h"

namespace dynamiccl {
namespace {

struct RunOptions {
  int n_ranks = 0;
  RuntimeOptions runtime;
  bool force_hostccl = false;
  bool force_no_hostccl = false;
  bool quiet = false;
  std::string home;
  std::string json;
};

void Register(CLI::App& app, RunOptions& options) {
  RuntimeOptions& runtime = options.runtime;
  app.add_option("-n,--ranks", options.n_ranks,
                 "Ranks to start here; without it the program is a launcher of its own")
      ->check(CLI::Range(1, 1024));
  app.add_option("--topology", runtime.topology, "Topology of hostccl: a TOML file or the name of a preset");
  app.add_option("--policy", runtime.policy, "Policy file (.dcpolicy)")->check(CLI::ExistingFile);
  app.add_option("--rules", runtime.rules, "Override rules (CSV); they win over the policy")
      ->check(CLI::ExistingFile);
  app.add_option("--mode", runtime.mode, "off, observe or frozen")
      ->check(CLI::IsMember({"off", "observe", "frozen"}));
  app.add_option("--trace", runtime.trace, "Record a trace here; %r stands for the rank");
  app.add_option("--decision-log", runtime.decision_log, "Write every decision here; %r stands for the rank");
  app.add_flag("--hostccl", options.force_hostccl,
               "Use hostccl as NCCL (the default on a machine without a GPU)");
  app.add_flag("--no-hostccl", options.force_no_hostccl, "Use the program's own NCCL")->excludes("--hostccl");
  app.add_option("--home", options.home, "Installation to load from (default: the one of this program)");
  app.add_option("--json", options.json, "Write the summary as JSON to this file");
  app.add_flag("-q,--quiet", options.quiet, "No summary");
}

// Ranks and launchers may change their folder: paths are handed over in full.
void MakeAbsolute(RuntimeOptions& runtime) {
  namespace fs = std::filesystem;
  for (std::string* path : {&runtime.policy, &runtime.rules, &runtime.trace, &runtime.decision_log}) {
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  }
  if (fs::exists(runtime.topology))
    runtime.topology = fs::absolute(runtime.topology).lexically_normal().string();
}

nlohmann::ordered_json ToJson(const LaunchOutcome& outcome, const RunOptions& options) {
  nlohmann::ordered_json ranks = nlohmann::json::array();
  for (const RankOutcome& rank : outcome.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"exit_code", rank.exit_code ? nlohmann::json(*rank.exit_code) : nlohmann::json()},
                     {"signal", rank.signal ? nlohmann::json(*rank.signal) : nlohmann::json()},
                     {"ended_by_launcher", rank.ended_by_us}});
  }
  const nlohmann::json first =
      outcome.first_failed ? nlohmann::json(outcome.first_failed->rank) : nlohmann::json();
  return {{"schema", 1},
          {"ok", outcome.ok()},
          {"seconds", static_cast<double>(outcome.wall_ns) * 1e-9},
          {"first_failed_rank", first},
          {"ranks", ranks},
          {"mode", options.runtime.mode},
          {"policy", options.runtime.policy},
          {"hostccl", options.runtime.hostccl}};
}

Status WriteJson(const std::string& path, const nlohmann::ordered_json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (file.good()) return {};
  return MakeError(ErrorKind::kInvalidArgument, "cannot write '{}'", path);
}

void PrintSummary(const LaunchOutcome& outcome, const RuntimeOptions& runtime) {
  if (outcome.ok())
    spdlog::info("{}", Describe(outcome));
  else
    spdlog::error("{}", Describe(outcome));
  const std::string source = !runtime.policy.empty()  ? "policy " + runtime.policy
                             : !runtime.rules.empty() ? "rules " + runtime.rules
                                                      : "no policy: NCCL's own choices";
  spdlog::info("{}{}{}", runtime.mode.empty() ? "" : "mode " + runtime.mode + ", ", source,
               runtime.hostccl ? ", over hostccl" : "");
  if (!runtime.trace.empty()) spdlog::info("trace {}", runtime.trace);
  if (!runtime.decision_log.empty()) spdlog::info("decisions {}", runtime.decision_log);
}

}  // namespace

Result<int> RunCommand(CommandLine& line) {
  RunOptions options;
  Register(line.app(), options);
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (line.program().empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl run: no program given"),
                    "put it after `--`: dynamiccl run -n 2 -- ./program");
  }
  options.runtime.hostccl = options.force_hostccl || (!options.force_no_hostccl && !MachineHasGpu());
  MakeAbsolute(options.runtime);
  DYNAMICCL_TRY(const Installation installation, FindInstallation(options.home));
  LaunchPlan plan{.command = line.program(), .n_ranks = options.n_ranks};
  DYNAMICCL_TRY(plan.environment, RuntimeEnvironment(installation, options.runtime));
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  if (!options.quiet) PrintSummary(outcome, options.runtime);
  if (!options.json.empty()) DYNAMICCL_CHECK_OK(WriteJson(options.json, ToJson(outcome, options)));
  return ExitCodeOf(outcome);
}

}  // namespace dynamiccl
