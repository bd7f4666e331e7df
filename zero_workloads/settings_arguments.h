// SPDX-License-Identifier: Apache-2.0
// Merges the options of settings files into a command line that names the files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace CLI {
class App;
}

namespace dynamiccl::zero {

// The merged command line.
struct SettingsArguments {
  std::vector<std::string> arguments;
  // Settings of the files that have no effect here, one sentence each.
  std::vector<std::string> notes;
  // The appended options that were translated from a file of another program, with their dashes. The value is
  // the place of the option in that file.
  std::map<std::string, std::string> translated;
};

// Adds --config and --deepspeed-config to the command.
void AddSettingsFileOptions(CLI::App* command);

// Appends the options of the settings files that the command line names. `arguments` are those of `command`,
// without its name. An option that the command line has itself is not appended. It is an error if a key is no
// option of the command, has a value where the option takes none, or lacks a value where the option takes
// one. The error names the place in the file. `world` is the number of ranks.
Result<SettingsArguments> WithSettingsFiles(const CLI::App& command, std::vector<std::string> arguments,
                                            int world);

}  // namespace dynamiccl::zero
