// SPDX-License-Identifier: Apache-2.0
// The table of environment variables that hostccl reads. See parameters.h.
#include "src/hostccl/parameters.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "src/base/settings.h"

namespace dynamiccl::hostccl {
namespace {

// The environment variables of NCCL that have an effect in hostccl, with their defaults.
constexpr ncclParamHandle kOfNccl[] = {
    {"NCCL_ALGO", ""},
    {"NCCL_PROTO", ""},
    {"NCCL_MIN_CTAS", ""},
    {"NCCL_MAX_CTAS", ""},
    {"NCCL_MIN_NCHANNELS", ""},
    {"NCCL_MAX_NCHANNELS", ""},
    {"NCCL_TUNER_PLUGIN", ""},
    {"NCCL_PROFILER_PLUGIN", ""},
    {"NCCL_NET_PLUGIN", ""},
    {"NCCL_DEBUG", "NONE"},
    {"NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV"},
    {"NCCL_DEBUG_FILE", ""},
};

// Returns NCCL's variables first, then hostccl's in the order of settings.def.
std::vector<ncclParamHandle> Collect() {
  std::vector<ncclParamHandle> all(std::begin(kOfNccl), std::end(kOfNccl));
  for (const SettingRow& row : AllSettings()) {
    if (std::strncmp(row.name, "HOSTCCL_", 8) == 0) all.push_back({row.name, row.default_value});
  }
  return all;
}

}  // namespace

std::span<const ncclParamHandle> AllParameters() {
  static const auto* const all = new std::vector<ncclParamHandle>(Collect());
  return *all;
}

const ncclParamHandle* FindParameter(const char* key) {
  const auto all = AllParameters();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ncclParamHandle& parameter) {
    return key != nullptr && std::strcmp(parameter.name, key) == 0;
  });
  return found == all.end() ? nullptr : &*found;
}

bool IsParameter(const ncclParamHandle* handle) {
  const auto all = AllParameters();
  return std::any_of(all.begin(), all.end(), [&](const ncclParamHandle& known) { return &known == handle; });
}

std::string TextOf(const ncclParamHandle& parameter) {
  const char* const value = ::secure_getenv(parameter.name);
  return value != nullptr ? value : parameter.default_value;
}

std::optional<int64_t> NumberOf(const ncclParamHandle& parameter) {
  const std::string text = TextOf(parameter);
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || errno != 0) return {};
  return number;
}

}  // namespace dynamiccl::hostccl
