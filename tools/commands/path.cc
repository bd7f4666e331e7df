// SPDX-License-Identifier: Apache-2.0
// `dynamiccl path`: where the objects are, one value on each line, for scripts and for NCCL_TUNER_PLUGIN.
// Without a flag every part is listed with its name; with one flag the path alone is printed, so that a
// script can write `$(dynamiccl path --starter)`:
//
//   hostccl  /opt/dynamiccl/lib/hostccl
//   agents   (not in this build)
//   starter  /opt/dynamiccl/share/dynamiccl/starter.dcpolicy
#include <filesystem>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

// A part of the installation and the flag that prints its path; the path is empty in a build without the
// part.
struct NamedPath {
  const char* flag;
  const char* sentence;
  std::string path;
};

// All parts in the order of the help.
std::vector<NamedPath> PathsOf(const Installation& installation) {
  const std::filesystem::path folder = std::filesystem::path(installation.preload).parent_path();
  const auto plugin = [&](const char* name) {
    const std::string path = (folder / name).string();
    // A wheel has no symbolic links that are named like plugins of NCCL. NCCL also accepts the object's own
    // name.
    return std::filesystem::exists(path) ? path : installation.preload;
  };
  return {{"folder", "Folder of the installation", installation.home},
          {"preload", "Object for LD_PRELOAD", installation.preload},
          {"tuner", "Object for NCCL_TUNER_PLUGIN", plugin("libnccl-tuner-dynamiccl.so")},
          {"profiler", "Object for NCCL_PROFILER_PLUGIN", plugin("libnccl-profiler-dynamiccl.so")},
          {"hostccl", "Folder for LD_LIBRARY_PATH with hostccl's libnccl.so.2", installation.hostccl_dir},
          {"agents", "Program that trains policies", installation.agents},
          {"zero", "Program that trains models", installation.zero},
          {"starter", "Policy that is shipped (DYNAMICCL_POLICY=starter)",
           FindDataFile(installation, "starter.dcpolicy")}};
}

Result<int> PrintOne(const NamedPath& wanted, const Installation& installation) {
  if (wanted.path.empty()) {
    return WithHint(MakeError(ErrorKind::kUnsupported, "no {} under '{}'", wanted.flag, installation.home),
                    "build all targets, or name another installation with --home");
  }
  fmt::print("{}\n", wanted.path);
  return kExitOk;
}

Result<int> PrintAll(const std::vector<NamedPath>& paths, bool as_json) {
  Json json{{"schema", 1}};
  for (const NamedPath& named : paths) {
    if (as_json)
      json[named.flag] = named.path;
    else
      fmt::print("{:<8} {}\n", named.flag, named.path.empty() ? "(not in this build)" : named.path);
  }
  if (as_json) PrintJson(json);
  return kExitOk;
}

}  // namespace

Result<int> PathCommand(CommandLine& line) {
  std::string home;
  bool json = false;
  line.app().add_option("--home", home, "Installation to look at (default: the one of this program)");
  line.app().add_flag("--json", json, "As JSON");
  for (const NamedPath& named : PathsOf({})) {
    line.app().add_flag(std::string("--") + named.flag, named.sentence);
  }
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(home));
  const std::vector<NamedPath> paths = PathsOf(installation);
  for (const NamedPath& named : paths) {
    if (line.app().count(std::string("--") + named.flag) > 0) return PrintOne(named, installation);
  }
  return PrintAll(paths, json);
}

}  // namespace dynamiccl
