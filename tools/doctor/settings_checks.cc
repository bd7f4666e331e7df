// SPDX-License-Identifier: Apache-2.0
// Checks the variables that are set, with the same parsers as a job: first the names, then the values, then
// the files that they name. A wrong value or file is a failure; an unknown name is a warning that names the
// nearest setting.
#include <fmt/format.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "src/base/settings.h"
#include "tools/doctor/check.h"
#include "tools/launch/installation.h"

namespace dynamiccl {
namespace {

// Settings that name a file which a job reads.
constexpr std::array kReadFiles = {Setting::kPolicy, Setting::kRules, Setting::kDecisions,
                                   Setting::kSiteStore};

// The settings that name files which each process of a job writes.
constexpr std::array kWrittenFiles = {Setting::kTrace, Setting::kMetrics, Setting::kDecisionLog};

// A setting that takes one of a few words.
struct WordSetting {
  Setting setting;
  std::vector<const char*> words;
  int (*compare)(const char*, const char*);  // returns 0 for the same word
  const char* fault;                         // names what any other word is
};
const WordSetting kWordSettings[] = {
    {Setting::kMode, {"", "off", "observe", "frozen", "adaptive"}, ::strcasecmp, "no mode"},
    {Setting::kTimes, {"", "0", "1", "all"}, std::strcmp, "none of 0, 1 and all"}};

// Returns a warning for each variable that has the prefix of a setting but is not a setting, which is most
// likely a typo.
std::vector<Finding> CheckNames() {
  std::vector<Finding> findings;
  for (const UnknownSetting& unknown : UnknownSettings(environ)) {
    findings.push_back({unknown.name, "no setting of ours", Verdict::kWarn,
                        fmt::format("did you mean {}? `dynamiccl config env` lists all", unknown.nearest)});
  }
  return findings;
}

// The message with which a job would reject the value; empty when it accepts it.
std::string FaultOf(const SettingRow& row) {
  if (row.type == SettingType::Integer) {
    const auto number = IntegerSetting(row.id);
    return number ? "" : number.error().message;
  }
  if (row.type == SettingType::Bool) {
    const auto flag = BoolSetting(row.id);
    return flag ? "" : flag.error().message;
  }
  const auto* const setting = std::find_if(std::begin(kWordSettings), std::end(kWordSettings),
                                           [&](const WordSetting& one) { return one.setting == row.id; });
  if (setting == std::end(kWordSettings)) return "";
  for (const char* const word : setting->words) {
    if (setting->compare(TextSetting(row.id).c_str(), word) == 0) return "";
  }
  return fmt::format("{}='{}' is {}", row.name, TextSetting(row.id), setting->fault);
}

std::vector<Finding> CheckValues() {
  std::vector<Finding> findings;
  for (const SettingRow& row : AllSettings()) {
    if (std::getenv(row.name) == nullptr) continue;
    const std::string fault = FaultOf(row);
    if (!fault.empty()) findings.push_back({row.name, fault, Verdict::kFail, row.sentence});
  }
  return findings;
}

// The path as a job takes it: "starter" is the policy of the installation.
std::string PathIn(Setting setting) {
  const std::string text = TextSetting(setting);
  if (setting != Setting::kPolicy) return text;
  const auto installation = FindInstallation();
  return installation ? PolicyFileOf(*installation, text).value_or(text) : text;
}

std::vector<Finding> CheckNamedFiles() {
  std::vector<Finding> findings;
  for (const Setting setting : kReadFiles) {
    const std::string path = PathIn(setting);
    // The store and the decisions are written by the first job, so they may not exist yet.
    const bool made_later = setting == Setting::kSiteStore || setting == Setting::kDecisions;
    if (path.empty() || (made_later && !std::filesystem::exists(path))) continue;
    Finding finding = CheckFileOf(setting, path);
    finding.subject = Row(setting).name;
    if (finding.verdict == Verdict::kOk) finding.value = fmt::format("{}: {}", path, finding.value);
    findings.push_back(std::move(finding));
  }
  return findings;
}

// A job makes the folder of a file that it writes, but not the folder above that one. A folder whose name has
// a part such as %h is not checked, because only the job knows its name.
std::vector<Finding> CheckWrittenFiles() {
  std::vector<Finding> findings;
  for (const Setting setting : kWrittenFiles) {
    const std::filesystem::path path = TextSetting(setting);
    const std::filesystem::path folder = path.parent_path(), above = folder.parent_path();
    std::error_code none;
    if (above.empty() || folder.string().find('%') != std::string::npos) continue;
    if (std::filesystem::is_directory(folder, none) || std::filesystem::is_directory(above, none)) continue;
    findings.push_back({Row(setting).name, fmt::format("{}: no folder {}", path.string(), folder.string()),
                        Verdict::kFail, fmt::format("mkdir -p {}", folder.string())});
  }
  return findings;
}

}  // namespace

std::vector<Finding> CheckSettings() {
  std::vector<Finding> findings = CheckNames();
  for (const auto& group : {CheckValues(), CheckNamedFiles(), CheckWrittenFiles()})
    findings.insert(findings.end(), group.begin(), group.end());
  return findings;
}

}  // namespace dynamiccl
