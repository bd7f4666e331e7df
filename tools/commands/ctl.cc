// SPDX-License-Identifier: Apache-2.0
// `dynamiccl ctl`: which jobs run with DynamICCL, what they decided, and how to give them another policy or
// other live values.
// docs/running_jobs.md shows its use. `status` reads /proc and the files of a job and asks the job nothing,
// so that a job that hangs is shown as well:
//
//   process 12730, rank 0: dynamiccl bench all_reduce -b 64K -e 64K -n 20 --rounds 150
//     mode       observe
//     policy     none
//     trace      live.0.ctrace
//     decisions  not known: start jobs with DYNAMICCL_METRICS=folder/%r.prom
#include <fmt/format.h>
#include <strings.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "src/base/file_kind.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/report/json_output.h"
#include "tools/running/metrics_reading.h"
#include "tools/running/policy_swap.h"
#include "tools/running/running_process.h"
#include "tools/running/value_setting.h"

namespace dynamiccl {
namespace {

// The options of all actions.
struct CtlOptions {
  // The policy to change to: a file, or the word starter. Empty: roll back.
  std::string fresh;
  std::string policy;
  std::vector<std::string> values;  // NAME=VALUE
  std::string values_path;
  int process_id = 0;
  bool json = false;
};

// Characters of a command line that are shown.
constexpr size_t kProgramWidth = 60;

// The processes on which the command acts: the one named by --pid, or all of this user.
std::vector<RunningProcess> Chosen(const CtlOptions& options) {
  std::vector<RunningProcess> processes = RunningProcesses();
  if (options.process_id != 0)
    std::erase_if(processes, [&](const RunningProcess& process) { return process.id != options.process_id; });
  return processes;
}

// A setting as the process was started with it; empty where it is not set.
std::string SettingOf(const RunningProcess& process, const char* name) {
  const auto found = process.settings.find(name);
  return found == process.settings.end() ? "" : found->second;
}

// The process's metrics; empty where it writes none or has not written any yet.
std::vector<MetricLine> MetricsOf(const RunningProcess& process) {
  const std::string path = process.PathSetting("DYNAMICCL_METRICS");
  if (!CheckIsFile(path)) return {};
  std::ifstream file(path);
  return ParseMetrics(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Path of the process's policy file; empty where none is set.
std::string PolicyOf(const RunningProcess& process) {
  if (SettingOf(process, "DYNAMICCL_POLICY") != kStarterWord) return process.PathSetting("DYNAMICCL_POLICY");
  const auto installation = FindInstallation();
  return installation ? PolicyFileOf(*installation, kStarterWord).value_or("") : "";
}

// "policy 120, nccl 30", or the text `nothing` where nothing is counted.
std::string CountsText(const std::map<std::string, double>& counts, const std::string& nothing) {
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count > 0) text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", name, count);
  }
  return text.empty() ? nothing : text;
}

// Says why there are no counts: no calls were made, no metrics are set up, or they are not written yet.
std::string WhereNothingIsCounted(const std::vector<MetricLine>& metrics, const RunningProcess& process) {
  if (!metrics.empty()) return "none";
  const std::string path = process.PathSetting("DYNAMICCL_METRICS");
  return path.empty() ? "not known: start jobs with DYNAMICCL_METRICS=folder/%r.prom"
                      : "not known yet: " + path + " is written every 10 s";
}

// Returns the mode of a process. Its metrics name the mode even if the user set none. Without metrics,
// returns the mode that the process's environment sets.
std::string ModeOf(const std::vector<MetricLine>& metrics, const RunningProcess& process) {
  for (const MetricLine& metric : metrics) {
    const auto mode = metric.labels.find("mode");
    if (metric.name == "dynamiccl_info" && mode != metric.labels.end()) return mode->second;
  }
  return SettingOf(process, "DYNAMICCL_MODE");
}

Json StatusJson(const RunningProcess& process) {
  const std::vector<MetricLine> metrics = MetricsOf(process);
  return {{"process_id", process.id},
          {"rank", process.rank},
          {"program", process.program},
          {"mode", ModeOf(metrics, process)},
          {"policy", PolicyOf(process)},
          {"trace", process.trace},
          {"metrics", process.PathSetting("DYNAMICCL_METRICS")},
          {"decisions", SumBy(metrics, "dynamiccl_decisions_total", "decided_by")},
          {"table_versions", SumBy(metrics, "dynamiccl_table_versions_total", "reason")},
          {"settings", process.settings}};
}

void PrintStatus(const RunningProcess& process) {
  const std::vector<MetricLine> metrics = MetricsOf(process);
  const std::string mode = ModeOf(metrics, process);
  const std::string policy = PolicyOf(process);
  const std::string unknown = WhereNothingIsCounted(metrics, process);
  fmt::print("process {}{}: {}\n", process.id, process.rank < 0 ? "" : fmt::format(", rank {}", process.rank),
             process.program.substr(0, kProgramWidth));
  fmt::print("  mode       {}\n  policy     {}\n  trace      {}\n",
             mode.empty() ? "by its other settings" : mode, policy.empty() ? "none" : policy,
             process.trace.empty() ? "none" : process.trace);
  fmt::print("  decisions  {}\n  versions   {}\n",
             CountsText(SumBy(metrics, "dynamiccl_decisions_total", "decided_by"), unknown),
             CountsText(SumBy(metrics, "dynamiccl_table_versions_total", "reason"), unknown));
}

Result<int> ShowStatus(const CtlOptions& options) {
  const std::vector<RunningProcess> processes = Chosen(options);
  if (options.json) {
    Json list = Json::array();
    for (const RunningProcess& process : processes) list.push_back(StatusJson(process));
    PrintJson({{"schema", 1}, {"processes", list}});
    return kExitOk;
  }
  for (const RunningProcess& process : processes) PrintStatus(process);
  if (processes.empty()) fmt::print("no process of yours on this machine has DynamICCL loaded\n");
  return kExitOk;
}

// A kind of file that adaptive jobs watch for changes: a policy file or a file of live values.
struct WatchedFile {
  std::string_view name;    // for messages
  std::string_view option;  // names the file itself
  std::string (*of)(const RunningProcess&);
};

// Returns the only file of this kind that the chosen adaptive jobs watch. Otherwise returns an error that
// says how to choose one.
Result<std::string> OnePath(const CtlOptions& options, const WatchedFile& file) {
  std::set<std::string> paths;
  for (const RunningProcess& process : Chosen(options)) {
    const std::string path = file.of(process);
    if (!path.empty() && ::strcasecmp(SettingOf(process, "DYNAMICCL_MODE").c_str(), "adaptive") == 0)
      paths.insert(path);
  }
  if (paths.size() == 1) return *paths.begin();
  if (paths.empty()) {
    return WithHint(
        MakeError(ErrorKind::kNotFound, "no adaptive job with a {} runs on this machine", file.name),
        fmt::format("only DYNAMICCL_MODE=adaptive takes up changes; name its file with {}", file.option));
  }
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "jobs with {} {}s run here", paths.size(), file.name),
      fmt::format("name one by --pid or {}; `dynamiccl ctl status` lists the jobs", file.option));
}

// The policy file that the chosen jobs watch: the one named, or that of the running adaptive jobs.
Result<std::string> WatchedPolicy(const CtlOptions& options, const Installation& installation) {
  if (!options.policy.empty()) return PolicyFileOf(installation, options.policy);
  return OnePath(options, {"policy file", "--policy", PolicyOf});
}

std::string ValuesFileOf(const RunningProcess& process) {
  return process.PathSetting("DYNAMICCL_VALUES");
}

// Sets live values, and prints all values that the file then holds.
Result<int> Set(const CtlOptions& options) {
  std::string path = options.values_path;
  if (path.empty()) {
    DYNAMICCL_TRY(path, OnePath(options, {"file of values (DYNAMICCL_VALUES)", "--file", ValuesFileOf}));
  }
  DYNAMICCL_TRY(const AgreedValues values, SetValues(path, options.values));
  if (options.json) {
    PrintJson({{"schema", 1}, {"file", path}, {"values", values}});
    return kExitOk;
  }
  fmt::print("{}:\n{}All ranks of a job take them up before the same call.\n", path, ValuesText(values));
  return kExitOk;
}

// Refuses to replace the shipped policy. It belongs to every user: a swap would change it under other jobs,
// and for later ones.
Status RequireOwn(const std::string& path, const Installation& installation) {
  std::error_code ignored;
  const auto shipped = PolicyFileOf(installation, kStarterWord);
  if (!shipped || !std::filesystem::equivalent(path, *shipped, ignored)) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is shipped, and not replaced", path),
                  "start jobs that shall be swapped with a copy: cp $(dynamiccl path --starter) p.dcpolicy");
}

Result<PolicySwap> SwapOrRollBack(const CtlOptions& options, const std::string& path,
                                  const Installation& installation) {
  DYNAMICCL_CHECK_OK(RequireOwn(path, installation));
  if (options.fresh.empty()) return RollBackPolicy(path);
  DYNAMICCL_TRY(const std::string fresh, PolicyFileOf(installation, options.fresh));
  return SwapPolicy(path, fresh);
}

// Replaces the watched policy, or restores the one before it. Prints the digests of the old and the new
// policy.
Result<int> Change(const CtlOptions& options) {
  DYNAMICCL_TRY(const Installation installation, FindInstallation());
  DYNAMICCL_TRY(const std::string path, WatchedPolicy(options, installation));
  DYNAMICCL_TRY(const PolicySwap swap, SwapOrRollBack(options, path, installation));
  if (options.json) {
    PrintJson(
        {{"schema", 1}, {"policy", path}, {"before", ToHex(swap.before)}, {"after", ToHex(swap.after)}});
    return kExitOk;
  }
  fmt::print("{}: {} -> {}\n", path, ToHex(swap.before).substr(0, 12), ToHex(swap.after).substr(0, 12));
  fmt::print(
      "Ranks take it up together when all of them see this file; `dynamiccl ctl rollback` undoes it.\n");
  return kExitOk;
}

}  // namespace

Result<int> CtlCommand(CommandLine& line) {
  CtlOptions options;
  CLI::App& app = line.app();
  app.require_subcommand(1);
  CLI::App* const status =
      app.add_subcommand("status", "Say which jobs run with DynamICCL here, and what they decided");
  CLI::App* const swap =
      app.add_subcommand("swap", "Give adaptive jobs another policy, which is checked first");
  swap->add_option("file", options.fresh, "Policy file to take up, or the word starter")->required();
  CLI::App* const rollback =
      app.add_subcommand("rollback", "Give them back the policy before the last change");
  for (CLI::App* const action : {swap, rollback})
    action->add_option("--policy", options.policy,
                       "Policy file that the job watches (default: that of the running jobs)");
  CLI::App* const set = app.add_subcommand("set", "Change live values of adaptive jobs");
  set->add_option("values", options.values, "NAME=VALUE, one or more")->required();
  set->add_option("--file", options.values_path,
                  "File of values that the job watches (default: that of the running jobs)");
  for (CLI::App* const action : {status, swap, rollback, set}) {
    action->add_option("--pid", options.process_id, "Process of the job (default: all of this user here)");
    action->add_flag("--json", options.json, "As JSON");
  }
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (set->parsed()) return Set(options);
  return status->parsed() ? ShowStatus(options) : Change(options);
}

}  // namespace dynamiccl
