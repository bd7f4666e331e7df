// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/setting_list.h"

#include "src/base/settings.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

const char* TypeName(SettingType type) {
  switch (type) {
    case SettingType::Text:
      return "text";
    case SettingType::Integer:
      return "number";
    case SettingType::Bool:
      return "0 or 1";
  }
  return "";
}

void PrintSettingsPage() {
  fmt::print(
      "# Settings\n\nEvery environment variable of the project. Written by `dynamiccl config env --markdown` "
      "from\n"
      "`src/base/settings.def`; a test compares.\n\n| Variable | Type | Default | Meaning "
      "|\n|---|---|---|---|\n");
  for (const SettingRow& row : AllSettings()) {
    const std::string value = *row.default_value == '\0' ? "" : fmt::format("`{}`", row.default_value);
    fmt::print("| `{}` | {} | {} | {} |\n", row.name, TypeName(row.type), value, row.sentence);
  }
}

void PrintSettingTable() {
  for (const SettingRow& row : AllSettings()) {
    const std::string value = TextSetting(row.id);
    fmt::print("{:<28} {}\n{:<28} {}\n", row.name, value.empty() ? "(not set)" : value, "", row.sentence);
  }
}

Json SettingsAsJson() {
  Json settings = Json::array();
  for (const SettingRow& row : AllSettings()) {
    settings.push_back({{"name", row.name},
                        {"type", TypeName(row.type)},
                        {"default", row.default_value},
                        {"value", TextSetting(row.id)},
                        {"meaning", row.sentence}});
  }
  return {{"schema", 1}, {"settings", settings}};
}

}  // namespace

void PrintSettingList(const SettingListOptions& options) {
  if (options.json)
    PrintJson(SettingsAsJson());
  else if (options.markdown)
    PrintSettingsPage();
  else
    PrintSettingTable();
}

}  // namespace dynamiccl
