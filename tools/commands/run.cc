// SPDX-License-Identifier: Apache-2.0
// `dynamiccl run`: runs a program under DynamICCL. The program's output is untouched; at the end a few lines
// go to standard error:
//
//   dynamiccl: 2 ranks ended well in 4.22 s
//   dynamiccl: policy starter.dcpolicy, over hostccl
//   dynamiccl: rank 0: of 60 calls the policy chose for 45, and 15 were left to NCCL
//
// In mode adaptive a line names what was found to be better than NCCL's choice.
// Where settings were asked for, a block follows: which of them are in effect, and what proves it.
#include <spdlog/spdlog.h>

#include <optional>

#include "src/base/file_kind.h"
#include "src/base/settings.h"
#include "tools/command_table.h"
#include "tools/launch/temporary_folder.h"
#include "tools/launch/written_files.h"
#include "tools/launch_options.h"
#include "tools/receipt/receipt_text.h"
#include "tools/receipt/run_receipts.h"
#include "tools/record/decided_launch.h"
#include "tools/record/found_choices.h"
#include "tools/report/json_output.h"
#include "tools/tune/megatron_settings.h"
#include "tools/tune/watched_run.h"

namespace dynamiccl {
namespace {

Json RunJson(const RankOutcome& rank) {
  return {{"rank", rank.rank},
          {"exit_code", rank.exit_code ? Json(*rank.exit_code) : Json()},
          {"signal", rank.signal ? Json(*rank.signal) : Json()},
          {"ended_by_launcher", rank.ended_by_us}};
}

Json DecisionsJson(const std::optional<DecisionAccount>& account) {
  if (!account) return {};
  return {{"rank", account->rank},
          {"decided_by", account->decided_by},
          {"taken_back", account->taken_back ? Json(*account->taken_back) : Json()}};
}

Json RunJson(const DecidedLaunch& launch, const RuntimeOptions& runtime, const std::string& found,
             const RunReceipts& receipts, const std::vector<SettingReceipt>& settings) {
  const LaunchOutcome& outcome = launch.outcome;
  Json ranks = Json::array();
  for (const RankOutcome& rank : outcome.ranks) ranks.push_back(RunJson(rank));
  return {{"schema", 1},
          {"ok", outcome.ok()},
          {"seconds", static_cast<double>(outcome.wall_ns) * 1e-9},
          {"first_failed_rank", outcome.first_failed ? Json(outcome.first_failed->rank) : Json()},
          {"ranks", ranks},
          {"mode", runtime.mode},
          {"policy", runtime.policy},
          {"hostccl", runtime.hostccl},
          {"decisions", DecisionsJson(launch.decisions)},
          {"found", found.empty() ? Json() : Json(found)},
          {"receipts", ReceiptsJson(receipts.receipts)},
          {"settings", ToJson(settings)}};
}

// A settings file that the job is started with, and the folder in which it is watched.
struct RunSettings {
  FrameworkSettings settings;
  TemporaryFolder folder;
  // True if the calls are recorded into `folder`; false if the user asked for a trace elsewhere.
  bool records = true;
  // The variables that the settings file makes this command set. The user did not ask for them.
  std::vector<Setting> own;
};

// Reads and checks the settings file before anything starts. Changes the launch so that the job applies the
// settings and proves them.
Result<RunSettings> UseSettings(const std::string& path, LaunchOptions& options) {
  DYNAMICCL_TRY(FrameworkSettings settings, ReadFrameworkSettings(path));
  // A tune that proves nothing writes such a file.
  if (!options.quiet && settings.values.empty() && settings.rules.empty())
    spdlog::warn("{} has no setting and no rules: the job runs as it is", path);
  RuntimeOptions& runtime = options.runtime;
  if (!settings.rules.empty()) {
    if (!runtime.rules.empty())
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} has rules, and --rules names others", path),
                      "leave out --rules, or remove the line \"rules\" and the checksum from the file");
    runtime.rules = settings.rules;
  }
  runtime.framework_settings = path;
  std::vector<Setting> own = {Setting::kFrameworkSettings, Setting::kFrameworkReport};
  if (runtime.mode.empty() && runtime.policy.empty() && runtime.rules.empty()) {
    runtime.mode = "observe";
    own.push_back(Setting::kMode);
  }
  DYNAMICCL_TRY(TemporaryFolder folder, TemporaryFolder::Create("settings"));
  const bool records = runtime.trace.empty();
  if (records) own.push_back(Setting::kTrace);
  Watch(folder.File(""), runtime);
  return RunSettings{std::move(settings), std::move(folder), records, std::move(own)};
}

std::vector<SettingReceipt> ReceiptsAfter(const RunSettings& used, const CommandWords& command) {
  return ReceiptsOfCommand(used.settings.values, command, ReadWatched(used.folder.File("")));
}

// Returns the variables that the launch set in the job's environment, except those that are set only because
// of the settings file.
EnvironmentChanges AskedFor(const LaunchPlan& plan, const std::optional<RunSettings>& used) {
  EnvironmentChanges asked = plan.environment;
  if (used)
    for (const Setting own : used->own) asked.erase(Row(own).name);
  return asked;
}

void PrintReceipts(const std::vector<SettingReceipt>& receipts) {
  for (const SettingReceipt& receipt : receipts) {
    if (receipt.standing == SettingStanding::kNotInEffect)
      spdlog::warn("{}", Describe(receipt));
    else
      spdlog::info("{}", Describe(receipt));
  }
}

}  // namespace

Result<int> RunCommand(CommandLine& line) {
  LaunchOptions options;
  std::string json, settings;
  RegisterLaunchOptions(line.app(), options);
  line.app()
      .add_option("--settings", settings,
                  "Apply this settings file to PyTorch or the trainer, and say what is in effect")
      ->check(CLI::ExistingFile);
  line.app().add_option("--trace", options.runtime.trace, "Record a trace here; %r stands for the rank");
  line.app().add_option(
      "--site-store", options.runtime.site_store,
      "Begin mode adaptive with what earlier jobs found, and add what this one finds (.dcsite)");
  line.app().add_option("--json", json, "Write the summary as JSON to this file");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputs({json}));
  std::optional<RunSettings> used;
  if (!settings.empty()) {
    DYNAMICCL_TRY(RunSettings made, UseSettings(settings, options));
    used.emplace(std::move(made));
  }
  std::optional<FoundChoices> found;
  const std::string program = line.program().empty() ? "" : line.program().front();
  if (ModeOf(options.runtime) == "adaptive" && RunsHere(options.n_ranks, program)) {
    DYNAMICCL_TRY(FoundChoices watched, FoundChoices::Watch(options.runtime));
    found.emplace(std::move(watched));
  }
  const CommandWords command = used ? WithValues(line.program(), used->settings.values) : line.program();
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(options, command));
  const bool decides = Decides(options.runtime);
  const auto begun = LaunchTime();
  DecidedLaunch launch;
  if (decides) {
    DYNAMICCL_TRY(launch, LaunchDecided(plan, TextSetting(Setting::kMetrics)));
  } else {
    DYNAMICCL_TRY(launch.outcome, Launch(plan));
  }
  const auto of_file = used ? ReceiptsAfter(*used, command) : std::vector<SettingReceipt>();
  if (used && used->records) options.runtime.trace.clear();
  if (!options.quiet || !launch.outcome.ok()) PrintSummary(launch.outcome, options.runtime);
  if (!options.quiet && decides) spdlog::info("{}", Describe(launch));
  const std::string choices = found ? found->Describe(launch.metrics) : "";
  if (!options.quiet && !choices.empty()) spdlog::info("{}", choices);
  if (!options.quiet) PrintReceipts(of_file);
  if (options.quiet && json.empty()) return ExitCodeOf(launch.outcome);
  if (found && found->own()) plan.environment.erase(Row(Setting::kSiteStore).name);
  const RunReceipts receipts =
      ReceiptsOfRun({AskedFor(plan, used), options.runtime.hostccl, begun, std::move(launch.metrics)});
  if (!options.quiet) {
    for (const std::string& text : RunReceiptLines(receipts)) spdlog::info("{}", text);
  }
  if (!json.empty())
    DYNAMICCL_CHECK_OK(WriteJsonFile(json, RunJson(launch, options.runtime, choices, receipts, of_file)));
  return ExitCodeOf(launch.outcome);
}

}  // namespace dynamiccl
