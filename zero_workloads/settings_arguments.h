// SPDX-License-Identifier: Apache-2.0
// A command line that names settings files, with their options in it.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace CLI {
class App;
}

namespace dynamiccl::zero {

struct SettingsArguments {
  std::vector<std::string> arguments;
  std::vector<std::string> notes;  // what files ask for that makes no difference
};

// Adds --config and --deepspeed-config.
void AddSettingsFileOptions(CLI::App* command);

// `arguments`: of `command`, without its name. Options of its files come behind them, those that the command
// line has itself left out. A key that is no option of the command, or has a value where the option takes
// none or the reverse, is an error that names its place.
Result<SettingsArguments> WithSettingsFiles(const CLI::App& command, std::vector<std::string> arguments,
                                            int world);

}  // namespace dynamiccl::zero
