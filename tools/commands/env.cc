// SPDX-License-Identifier: Apache-2.0
// `dynamiccl env`: every environment variable of the project, from the one table (src/base/settings.def).
#include "src/base/settings.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
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

void PrintMarkdown() {
  fmt::print(
      "# Settings\n\nEvery environment variable of the project. Written by `dynamiccl env --markdown` from\n"
      "`src/base/settings.def`; a test compares.\n\n| Variable | Type | Default | Meaning "
      "|\n|---|---|---|---|\n");
  for (const SettingRow& row : AllSettings()) {
    const std::string value = *row.default_value == '\0' ? "" : fmt::format("`{}`", row.default_value);
    fmt::print("| `{}` | {} | {} | {} |\n", row.name, TypeName(row.type), value, row.sentence);
  }
}

void PrintTable() {
  for (const SettingRow& row : AllSettings()) {
    const std::string value = TextSetting(row.id);
    fmt::print("{:<28} {}\n{:<28} {}\n", row.name, value.empty() ? "(not set)" : value, "", row.sentence);
  }
}

Json AsJson() {
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

Result<int> EnvCommand(CommandLine& line) {
  bool markdown = false;
  bool json = false;
  line.app().add_flag("--markdown", markdown, "As the page docs/settings.md");
  line.app().add_flag("--json", json, "As JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (json)
    PrintJson(AsJson());
  else if (markdown)
    PrintMarkdown();
  else
    PrintTable();
  return kExitOk;
}

}  // namespace dynamiccl
