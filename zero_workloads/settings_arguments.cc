// SPDX-License-Identifier: Apache-2.0
// Processes the arguments before CLI11 parses them, so that options from files are checked like any others.
#include "zero_workloads/settings_arguments.h"

#include <CLI/CLI.hpp>
#include <set>

#include "src/base/nearest_name.h"
#include "zero_workloads/settings_file.h"

namespace dynamiccl::zero {
namespace {

// The options that name settings files.
constexpr const char* kConfig = "--config";
constexpr const char* kDeepSpeedConfig = "--deepspeed-config";

std::string NameOf(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

// The value of an option, given as "--name value" or "--name=value"; empty if it is not given.
std::string ValueOf(const CLI::App& command, const char* name, const std::vector<std::string>& arguments) {
  const CLI::Option* const wanted = command.get_option(name);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].rfind("--", 0) != 0 || command.get_option_no_throw(NameOf(arguments[i])) != wanted)
      continue;
    if (const size_t equals = arguments[i].find('='); equals != std::string::npos)
      return arguments[i].substr(equals + 1);
    if (i + 1 < arguments.size()) return arguments[i + 1];
  }
  return {};
}

Result<FileOptions> ReadFiles(const CLI::App& command, const std::vector<std::string>& arguments, int world) {
  FileOptions all;
  const std::string config = ValueOf(command, kConfig, arguments);
  const std::string deepspeed = ValueOf(command, kDeepSpeedConfig, arguments);
  if (!config.empty() && !deepspeed.empty()) {
    return MakeError(ErrorKind::kInvalidArgument, "{} and {}: one of them at a time", kConfig,
                     kDeepSpeedConfig);
  }
  if (!config.empty()) return ReadTomlSettings(config);
  if (!deepspeed.empty()) return ReadDeepSpeedSettings(deepspeed, world);
  return all;
}

std::string NearestSetting(const CLI::App& command, const std::string& key) {
  std::vector<std::string_view> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return NearestName(key, names);
}

Status CheckOption(const CLI::App& command, const FileOption& option) {
  const CLI::Option* const known = command.get_option_no_throw(option.option);
  const std::string key = option.option.substr(2);
  if (known == nullptr || known == command.get_option(kConfig) ||
      known == command.get_option(kDeepSpeedConfig)) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{}: '{}' is no setting", option.origin, key),
        fmt::format("'{}' is one; settings are the options of --help, without the dashes in front",
                    NearestSetting(command, key)));
  }
  const bool is_flag = known->get_expected_max() == 0;
  if (is_flag == option.values.empty()) return {};
  return MakeError(ErrorKind::kInvalidArgument, "{}: '{}' {}", option.origin, key,
                   is_flag ? "is true or false" : "has a value that is not true or false");
}

// True if `option` is --no-X, and the command has a flag --X but no --no-X: the file sets the flag to
// `false`. Such an option is left out of the arguments.
bool LeavesFlagOut(const CLI::App& command, const FileOption& option) {
  if (option.option.rfind("--no-", 0) != 0 || command.get_option_no_throw(option.option) != nullptr)
    return false;
  const CLI::Option* const flag = command.get_option_no_throw("--" + option.option.substr(5));
  return flag != nullptr && flag->get_expected_max() == 0;
}

}  // namespace

void AddSettingsFileOptions(CLI::App* command) {
  command->add_option(kConfig, "TOML file of options; those of the command line win.");
  command->add_option(std::string(kDeepSpeedConfig) + ",--deepspeed_config",
                      "DeepSpeed's JSON file; options of the command line win.");
}

Result<SettingsArguments> WithSettingsFiles(const CLI::App& command, std::vector<std::string> arguments,
                                            int world) {
  DYNAMICCL_TRY(const FileOptions file, ReadFiles(command, arguments, world));
  std::map<std::string, std::string> translated;
  std::set<const CLI::Option*> given;
  for (const std::string& argument : arguments) {
    if (argument.rfind("--", 0) == 0) given.insert(command.get_option_no_throw(NameOf(argument)));
  }
  for (const FileOption& option : file.options) {
    if (LeavesFlagOut(command, option)) continue;
    DYNAMICCL_CHECK_OK(CheckOption(command, option));
    if (given.count(command.get_option(option.option)) != 0) continue;
    arguments.push_back(option.option);
    arguments.insert(arguments.end(), option.values.begin(), option.values.end());
    if (file.translated) translated.emplace(option.option, option.origin);
  }
  return SettingsArguments{std::move(arguments), file.notes, std::move(translated)};
}

}  // namespace dynamiccl::zero
