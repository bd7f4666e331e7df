// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/nccl_variable.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "src/base/file_kind.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {
namespace {

// Returns the files in the order in which NCCL reads them; the first file that sets a variable counts.
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

// NCCL's names for the bits of a CTA policy.
constexpr std::pair<std::string_view, int> kPolicies[] = {{"DEFAULT", NCCL_CTA_POLICY_DEFAULT},
                                                          {"EFFICIENCY", NCCL_CTA_POLICY_EFFICIENCY},
                                                          {"ZERO", NCCL_CTA_POLICY_ZERO}};

bool EqualInAnyCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
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

std::optional<int> ParseCtaPolicy(std::string_view text) {
  if (!text.empty() && text[0] >= '0' && text[0] <= '2') return text[0] - '0';
  std::optional<int> policy;
  while (!text.empty()) {
    const std::string_view token = text.substr(0, text.find('|'));
    for (const auto& [name, bit] : kPolicies) {
      if (EqualInAnyCase(token, name)) policy = policy.value_or(0) | bit;
    }
    text.remove_prefix(std::min(token.size() + 1, text.size()));
  }
  return policy;
}

}  // namespace dynamiccl
