// SPDX-License-Identifier: Apache-2.0
// `dynamiccl version`: prints the version on one line, `dynamiccl 0.1.0`, or with --json as an object.
#include "tools/version.h"

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

Result<int> VersionCommand(CommandLine& line) {
  bool json = false;
  line.app().add_flag("--json", json, "As JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (json)
    PrintJson({{"schema", 1}, {"version", kVersion}});
  else
    fmt::print("dynamiccl {}\n", kVersion);
  return kExitOk;
}

}  // namespace dynamiccl
