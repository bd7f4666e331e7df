// SPDX-License-Identifier: Apache-2.0
// Registers the launch options with CLI11 and turns their values into a plan.
#include "tools/launch_options.h"

#include <spdlog/spdlog.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>

#include "src/decision/override_rules.h"
#include "src/policy/policy_file.h"
#include "src/transport/topology.h"
#include "tools/exit_code.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

void MakeAbsolute(RuntimeOptions& runtime) {
  for (std::string* path : {&runtime.policy, &runtime.rules, &runtime.trace, &runtime.decision_log,
                            &runtime.site_store, &runtime.framework_settings, &runtime.framework_report}) {
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  }
  // A topology may be a file or the name of a preset, which hostccl looks up. Only the path of an existing
  // file is changed.
  if (fs::exists(runtime.topology))
    runtime.topology = fs::absolute(runtime.topology).lexically_normal().string();
}

std::string DescribeChoice(const RuntimeOptions& runtime) {
  if (!runtime.policy.empty()) return "policy " + runtime.policy;
  if (!runtime.rules.empty()) return "rules " + runtime.rules;
  if (runtime.mode == "adaptive") return "no policy: begins with NCCL's own choices";
  return "no policy: NCCL's own choices";
}

// Registers --policy. The word starter becomes a path only in the final callback, when --home is parsed too.
void AddPolicy(CLI::App& app, LaunchOptions& options) {
  const CLI::Validator file(
      [](std::string& word) { return word == kStarterWord ? std::string() : CLI::ExistingFile(word); },
      "FILE or starter");
  app.add_option("--policy", options.runtime.policy,
                 "Policy file (.dcpolicy) to load the runtime with, or the word starter for the one that is "
                 "shipped (a file of that name is ./starter)")
      ->check(file);
  app.final_callback([&options] {
    std::string& policy = options.runtime.policy;
    if (policy != kStarterWord) return;
    auto found = FindInstallation(options.home).and_then([&](const Installation& installation) {
      return PolicyFileOf(installation, policy);
    });
    if (!found) throw CLI::ValidationError("--policy", found.error().message);
    policy = *found;
  });
}

}  // namespace

void RegisterNcclOptions(CLI::App& app, LaunchOptions& options) {
  app.add_flag("--hostccl", options.force_hostccl,
               "Use hostccl as NCCL (the default on a machine without a GPU)");
  app.add_flag("--no-hostccl", options.force_no_hostccl,
               "Use the NCCL in LD_LIBRARY_PATH, or the program's own")
      ->excludes("--hostccl");
  app.add_option("--home", options.home, "Installation to load from (default: the one of this program)");
}

void RegisterRankOptions(CLI::App& app, LaunchOptions& options) {
  RuntimeOptions& runtime = options.runtime;
  app.add_option("--topology", runtime.topology, "Topology of hostccl: a TOML file or the name of a preset");
  AddPolicy(app, options);
  app.add_option("--rules", runtime.rules, "Override rules (CSV or TOML); they win over the policy")
      ->check(CLI::ExistingFile);
  app.add_option("--mode", runtime.mode, "Load the runtime in this mode: off, observe, frozen or adaptive")
      ->check(CLI::IsMember({"off", "observe", "frozen", "adaptive"}));
  RegisterNcclOptions(app, options);
}

void RegisterLaunchOptions(CLI::App& app, LaunchOptions& options) {
  app.add_option("-n,--ranks", options.n_ranks,
                 "Ranks to start here; without it the program is a launcher of its own")
      ->check(CLI::Range(1, 1024));
  RegisterRankOptions(app, options);
  app.add_option("--decision-log", options.runtime.decision_log,
                 "Write every decision here; %r stands for the rank");
  app.add_flag("-q,--quiet", options.quiet, "No summary of a job that ends well");
}

Status CheckChoices(const RuntimeOptions& runtime) {
  if (!runtime.policy.empty()) DYNAMICCL_CHECK_OK(ReadPolicyFile(runtime.policy));
  if (!runtime.rules.empty()) DYNAMICCL_CHECK_OK(OverrideRules::ReadFile(runtime.rules));
  return {};
}

Status CheckProgramGiven(const std::vector<std::string>& command) {
  if (!command.empty()) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "no program given"),
                  "put it after `--`, such as: -- torchrun --nproc-per-node 8 train.py");
}

Result<LaunchPlan> PlanLaunch(LaunchOptions& options, std::vector<std::string> command) {
  DYNAMICCL_CHECK_OK(CheckProgramGiven(command));
  options.runtime.hostccl = options.force_hostccl || (!options.force_no_hostccl && !MachineHasGpu());
  MakeAbsolute(options.runtime);
  DYNAMICCL_CHECK_OK(CheckChoices(options.runtime));
  if (!options.runtime.topology.empty()) DYNAMICCL_CHECK_OK(LoadTopology(options.runtime.topology));
  DYNAMICCL_TRY(const Installation installation, FindInstallation(options.home));
  LaunchPlan plan{.command = std::move(command), .n_ranks = options.n_ranks};
  DYNAMICCL_TRY(plan.environment, RuntimeEnvironment(installation, options.runtime));
  return plan;
}

Result<LaunchOutcome> LaunchSameCommand(const CommandLine& line, const char* command,
                                        LaunchOptions& options) {
  RuntimeOptions& runtime = options.runtime;
  runtime.preload = !runtime.policy.empty() || !runtime.rules.empty() || !runtime.mode.empty();
  DYNAMICCL_TRY(const Installation installation, FindInstallation(options.home));
  std::vector<std::string> words{installation.dynamiccl, command};
  words.insert(words.end(), line.arguments().begin(), line.arguments().end());
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(options, std::move(words)));
  return Launch(plan);
}

int AnswerOf(const LaunchOutcome& outcome) {
  const auto& failed = outcome.first_failed;
  if (failed && failed->exit_code.value_or(kExitJobFailed) < kExitJobFailed) return *failed->exit_code;
  return ExitCodeOf(outcome);
}

void PrintSummary(const LaunchOutcome& outcome, const RuntimeOptions& runtime) {
  if (outcome.ok())
    spdlog::info("{}", Describe(outcome));
  else
    spdlog::error("{}", Describe(outcome));
  const std::string mode = runtime.mode.empty() ? "" : "mode " + runtime.mode + ", ";
  spdlog::info("{}{}{}", mode, DescribeChoice(runtime), runtime.hostccl ? ", over hostccl" : "");
  if (!runtime.trace.empty()) spdlog::info("trace {}", runtime.trace);
  if (!runtime.decision_log.empty()) spdlog::info("decisions {}", runtime.decision_log);
}

}  // namespace dynamiccl
