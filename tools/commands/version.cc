// SPDX-License-Identifier: Apache-2.0
// `dynamiccl version`: prints the version and how it was installed on one line, or with --json as an object.
#include "tools/version.h"

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

Result<int> VersionCommand(CommandLine& line) {
  bool json = false;
  line.app().add_flag("--json", json, "As JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (json)
    PrintJson({{"schema", 1}, {"version", kVersion}, {"installed", InstalledAs()}});
  else
    fmt::print("dynamiccl {} ({})\n", kVersion, InstalledAs());
  return kExitOk;
}

}  // namespace dynamiccl
