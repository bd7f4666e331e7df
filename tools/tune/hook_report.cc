// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/hook_report.h"

#include <algorithm>
#include <filesystem>

namespace dynamiccl {
namespace {

// End of the name of a report, which distinguishes it from other files of the folder.
constexpr const char* kReportEnd = ".hook.json";

// A flag of the report; nothing if the report does not have it.
std::optional<bool> FlagOf(const Json& json, const char* name) {
  return json.contains(name) ? std::optional(json[name].get<bool>()) : std::nullopt;
}

DdpReport DdpOf(const Json& json) {
  return {.constructed = json.value("constructed", 0),
          .bucket_cap_mb = json.value("bucket_cap_mb", 0.0),
          .takes_first_bucket = json.value("takes_first_bucket", false),
          .gradient_as_bucket_view = FlagOf(json, "gradient_as_bucket_view"),
          .static_graph = FlagOf(json, "static_graph"),
          .find_unused_parameters = json.value("find_unused_parameters", false),
          .gradient_bytes = json.value("gradient_bytes", uint64_t{0}),
          .parameters = json.value("parameters", std::vector<uint64_t>()),
          .on_host = json.value("on_host", false),
          .buckets = json.value("buckets", std::vector<uint64_t>()),
          .gradient_pieces = json.value("gradient_pieces", std::vector<uint64_t>())};
}

Fsdp2Report Fsdp2Of(const Json& json) {
  return {.wrapped = json.value("wrapped", 0),
          .largest_unit = json.value("largest_unit", 1),
          .longest_row = json.value("longest_row", 1),
          .forward_prefetch = json.value("forward_prefetch", 0),
          .backward_prefetch = json.value("backward_prefetch", 0),
          .passes = std::max(1, json.value("passes", 1)),
          .takes_lists = json.value("takes_lists", false),
          .one_mesh = json.value("one_mesh", false),
          .parameter_bytes = json.value("parameter_bytes", uint64_t{0}),
          .free_bytes = json.value("free_bytes", uint64_t{0}),
          .on_host = json.value("on_host", false)};
}

DeepSpeedReport DeepSpeedOf(const Json& json) {
  DeepSpeedReport report{.constructed = json.value("constructed", 0),
                         .stage = json.value("stage", 0),
                         .names = json.value("names", std::vector<std::string>()),
                         .parameters = json.value("parameters", std::vector<int64_t>()),
                         .largest_module = json.value("largest_module", int64_t{0}),
                         .on_host = json.value("on_host", false),
                         .micro_steps = json.value("micro_steps", int64_t{1})};
  const Json values = json.value("values", Json::object());
  for (const auto& [name, value] : values.items()) report.values[name] = value;
  return report;
}

// Throws Json::exception where a member has the wrong kind.
HookReport ReportOf(const Json& json) {
  HookReport report{.rank = json.value("rank", -1), .error = json.value("error", "")};
  const Json frameworks = json.value("frameworks", Json::object());
  if (frameworks.contains("ddp")) report.ddp = DdpOf(frameworks["ddp"]);
  if (frameworks.contains("fsdp2")) report.fsdp2 = Fsdp2Of(frameworks["fsdp2"]);
  if (frameworks.contains("deepspeed")) report.deepspeed = DeepSpeedOf(frameworks["deepspeed"]);
  const Json settings = json.value("settings", Json::object());
  for (const auto& [name, row] : settings.items())
    report.settings[name] = {row.value("asked", Json()), row.value("in_effect", Json()),
                             row.value("reason", "")};
  return report;
}

}  // namespace

bool HookReport::uses_framework_of(const std::string& setting) const {
  if (setting.starts_with("deepspeed.")) return deepspeed.has_value();
  return setting.starts_with("ddp.") ? ddp.has_value() : fsdp2.has_value();
}

bool HookReport::on_host() const {
  if (ddp) return ddp->on_host;
  return fsdp2 ? fsdp2->on_host : deepspeed && deepspeed->on_host;
}

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
