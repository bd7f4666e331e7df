// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/nccl_variable.h"

#include <cstdlib>
#include <fstream>
#include <vector>

#include "src/base/file_kind.h"

namespace dynamiccl {
namespace {

std::vector<std::string> ConfigurationFiles() {
  std::vector<std::string> files;
  const char* named = ::secure_getenv("NCCL_CONF_FILE");
  const char* home = ::secure_getenv("HOME");
  if (named != nullptr && *named != '\0') {
    files.push_back(named);
  } else if (home != nullptr) {
    files.push_back(std::string(home) + "/.nccl.conf");
  }
  files.push_back("/etc/nccl.conf");
  return files;
}

}  // namespace

std::optional<std::string> NcclVariable(const std::string& name) {
  if (const char* value = ::secure_getenv(name.c_str())) return value;
  for (const std::string& path : ConfigurationFiles()) {
    if (!CheckIsFile(path)) continue;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace dynamiccl
