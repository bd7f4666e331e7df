// SPDX-License-Identifier: Apache-2.0
// The environment variables of the project. settings.def declares each of them once, with type, default and a
// sentence for the manual; this file reads them.
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

// Text is taken as it is, Integer is a decimal int64, Bool is 0 or 1.
enum class SettingType { Text, Integer, Bool };

// One line of settings.def. All texts are literals.
struct SettingRow {
  Setting id;
  const char* name;
  SettingType type;
  const char* default_value;
  const char* sentence;
};

// The whole table in the order of settings.def, indexed by Setting.
std::span<const SettingRow> AllSettings();
const SettingRow& Row(Setting setting);

// Returns the variable's text, or its default. It is read anew at each call, with secure_getenv: setuid
// programs see the default.
std::string TextSetting(Setting setting);
// Parses the text of TextSetting as a decimal number. The error names the variable and its text.
Result<int64_t> IntegerSetting(Setting setting);
// Parses the text of TextSetting; anything but 0 or 1 is an error that names the variable.
Result<bool> BoolSetting(Setting setting);

// A variable in the environment that has one of our prefixes but is not in the table, most likely a typing
// mistake, with the known name nearest to it.
struct UnknownSetting {
  std::string name;
  std::string nearest;
};
// Returns the unknown variables. `environment` is a null-terminated list of "NAME=value" as in environ; null
// counts as empty.
std::vector<UnknownSetting> UnknownSettings(const char* const* environment);

// Returns the name of this host; empty if the system does not tell it.
std::string HostName();
// Replaces %h by the host name, %p by this process's id and %r by `rank`. All other text stays, a lone %
// included.
std::string ExpandPath(const std::string& pattern, int rank);
// Expands the pattern for another process on this host, whose id is `process_id`.
std::string ExpandPath(const std::string& pattern, int rank, int process_id);

}  // namespace dynamiccl
