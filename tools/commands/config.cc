// SPDX-License-Identifier: Apache-2.0
// `dynamiccl config`: shows which settings the environment has and could have, and checks before a job starts
// whether the job could use them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "src/base/settings.h"
#include "tools/command_table.h"
#include "tools/commands/print_findings.h"
#include "tools/commands/setting_list.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

struct ConfigOptions {
  std::vector<std::string> files;
  bool markdown = false;
  bool json = false;
};

int ShowConfig(bool json) {
  Json settings = Json::object();
  for (const SettingRow& row : AllSettings()) {
    if (std::getenv(row.name) == nullptr) continue;
    settings[row.name] = TextSetting(row.id);
    if (!json) fmt::print("{}={}\n", row.name, TextSetting(row.id));
  }
  if (json) PrintJson({{"schema", 1}, {"settings", settings}});
  if (settings.empty()) spdlog::info("nothing is set; `dynamiccl config env` lists what can be");
  return kExitOk;
}

int Check(const ConfigOptions& options) {
  std::vector<Finding> findings;
  for (const std::string& file : options.files) findings.push_back(CheckFile(file));
  if (options.files.empty()) findings = CheckSettings();
  if (findings.empty()) findings.push_back({"Settings", "nothing wrong", Verdict::kOk, ""});
  return PrintFindings(findings, options.json);
}

}  // namespace

Result<int> ConfigCommand(CommandLine& line) {
  ConfigOptions options;
  line.app().require_subcommand(1);
  CLI::App* const show =
      line.app().add_subcommand("show", "Print the settings that the environment makes, one a line");
  CLI::App* const env =
      line.app().add_subcommand("env", "List every environment variable with its value and meaning");
  env->add_flag("--markdown", options.markdown, "As the page docs/settings.md");
  CLI::App* const check = line.app().add_subcommand(
      "check", "Say whether files, or what the environment sets, could be used by a job");
  check->add_option("files", options.files,
                    "Policies, rules, topologies, traces, measurements, site stores, saved decisions "
                    "(default: the environment's settings and the files that they name)");
  for (CLI::App* const action : {show, env, check}) action->add_flag("--json", options.json, "As JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (show->parsed()) return ShowConfig(options.json);
  if (check->parsed()) return Check(options);
  PrintSettingList({options.markdown, options.json});
  return kExitOk;
}

}  // namespace dynamiccl
