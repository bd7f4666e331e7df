// SPDX-License-Identifier: Apache-2.0
// The environment variables of the project, declared once in settings.def.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

enum class Setting {
#define DYNAMICCL_SETTING(id, name, type, value, sentence) id,
#include "src/base/settings.def"
#undef DYNAMICCL_SETTING
};

enum class SettingType { Text, Integer, Bool };

struct SettingRow {
  Setting id;
  const char* name;
  SettingType type;
  const char* default_value;
  const char* sentence;
};

std::span<const SettingRow> AllSettings();
const SettingRow& Row(Setting setting);

// The variable's text, or its default. Read with secure_getenv: ignored in setuid programs.
std::string TextSetting(Setting setting);
// A number that does not parse is an error that names the variable.
Result<int64_t> IntegerSetting(Setting setting);
// 0 or 1; anything else is an error that names the variable.
Result<bool> BoolSetting(Setting setting);

// Unknown names with our prefixes in the environment, each with the nearest known name: what a typo looks
// like.
struct UnknownSetting {
  std::string name;
  std::string nearest;
};
std::span<const char* const> SettingPrefixes();
std::vector<UnknownSetting> UnknownSettings(const char* const* environment);

// Replaces %h (host), %p (process id) and %r (rank) in a path.
std::string ExpandPath(const std::string& pattern, int rank);
// Likewise of another process on this host.
std::string ExpandPath(const std::string& pattern, int rank, int process_id);

}  // namespace dynamiccl
