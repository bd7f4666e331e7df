// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/hook_report.h"

#include <algorithm>
#include <filesystem>

namespace dynamiccl {
namespace {

// End of the name of a report, which distinguishes it from other files of the folder.
constexpr const char* kReportEnd = ".hook.json";

DdpReport DdpOf(const Json& json) {
  return {.constructed = json.value("constructed", 0),
          .bucket_cap_mb = json.value("bucket_cap_mb", 0.0),
          .gradient_bytes = json.value("gradient_bytes", uint64_t{0}),
          .parameters = json.value("parameters", std::vector<uint64_t>()),
          .on_host = json.value("on_host", false),
          .buckets = json.value("buckets", std::vector<uint64_t>()),
          .gradient_pieces = json.value("gradient_pieces", std::vector<uint64_t>())};
}

Fsdp2Report Fsdp2Of(const Json& json) {
  return {.wrapped = json.value("wrapped", 0),
          .parameter_bytes = json.value("parameter_bytes", uint64_t{0}),
          .free_bytes = json.value("free_bytes", uint64_t{0}),
          .on_host = json.value("on_host", false)};
}

// Throws Json::exception where a member has the wrong kind.
HookReport ReportOf(const Json& json) {
  HookReport report{.rank = json.value("rank", -1), .error = json.value("error", "")};
  const Json frameworks = json.value("frameworks", Json::object());
  if (frameworks.contains("ddp")) report.ddp = DdpOf(frameworks["ddp"]);
  if (frameworks.contains("fsdp2")) report.fsdp2 = Fsdp2Of(frameworks["fsdp2"]);
  const Json settings = json.value("settings", Json::object());
  for (const auto& [name, row] : settings.items())
    report.settings[name] = {row.value("asked", Json()), row.value("in_effect", Json()),
                             row.value("reason", "")};
  return report;
}

}  // namespace

std::string ReportPattern(const std::string& folder) {
  return folder + "/%h.%p" + kReportEnd;
}

std::vector<HookReport> ReadHookReports(const std::string& folder) {
  std::vector<HookReport> reports;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().string().ends_with(kReportEnd)) continue;
    const auto json = ReadJsonFile(entry.path());
    if (!json || !json->is_object()) continue;
    try {
      HookReport report = ReportOf(*json);
      if (report.uses_framework() || !report.error.empty()) reports.push_back(std::move(report));
    } catch (const Json::exception&) {
      continue;
    }
  }
  std::ranges::sort(reports, {}, &HookReport::rank);
  return reports;
}

}  // namespace dynamiccl
