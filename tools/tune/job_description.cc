// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/job_description.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "src/collective/size_class.h"
#include "tools/tune/framework_settings.h"
#include "tools/tune/setting_receipt.h"

namespace dynamiccl {
namespace {

using Parts = std::vector<std::string>;

std::string YesOrNo(const AdvisedJob& job, const char* setting) {
  return fmt::format("{}{}", SettingOf(job, setting) == "true" ? "" : "no ", setting);
}

void AddTrainer(const AdvisedJob& job, Parts& parts) {
  parts.push_back(fmt::format("ZeRO stage {}", StageOf(job)));
  const int64_t bytes = std::stoll(SettingOf(job, "bucket_bytes"));
  if (SettingOf(job, "unit") == "block")
    parts.push_back(bytes >= kBytesOfOneBucket ? "one bucket"
                                               : "buckets of " + FormatBytes(static_cast<uint64_t>(bytes)));
  parts.push_back(YesOrNo(job, "overlap"));
  if (StageOf(job) == 3) parts.push_back(YesOrNo(job, "prefetch"));
}

void AddDdp(const DdpReport& report, Parts& parts) {
  parts.push_back(fmt::format("buckets of {:.3g} MiB", report.bucket_cap_mb));
  if (report.gradient_as_bucket_view == true) parts.emplace_back("gradients are views of buckets");
  if (report.static_graph == true) parts.emplace_back("static graph");
  if (report.find_unused_parameters) parts.emplace_back("unused parameters are looked for");
}

void AddFsdp2(const Fsdp2Report& report, const RecordedStep& step, Parts& parts) {
  const std::optional<bool> again = GathersAgain(report, step);
  parts.push_back(report.largest_unit == 1
                      ? fmt::format("{} wrapped modules", report.wrapped)
                      : fmt::format("{} units of at most {} modules", report.wrapped, report.largest_unit));
  if (report.forward_prefetch > 0)
    parts.push_back(fmt::format("forward prefetch {}", report.forward_prefetch));
  if (report.backward_prefetch > 0)
    parts.push_back(fmt::format("backward prefetch {}", report.backward_prefetch));
  if (!again) return;
  parts.emplace_back(*again ? "parameters gathered again in the backward pass"
                            : "parameters kept for the backward pass");
}

void AddDeepSpeed(const DeepSpeedReport& report, Parts& parts) {
  parts.push_back(fmt::format("ZeRO stage {}", report.stage));
  for (const auto& [name, value] : report.values)
    if (!value.is_null()) parts.push_back(fmt::format("{} {}", name, value.dump()));
}

// Adds the type of the largest call that sums gradients.
void AddReduceType(const RecordedStep& step, Parts& parts) {
  const WireOperation* largest = nullptr;
  for (const WireOperation& one : step.operations) {
    const bool sums =
        one.collective == Collective::kAllReduce || one.collective == Collective::kReduceScatter;
    if (sums && (largest == nullptr || one.Bytes() > largest->Bytes())) largest = &one;
  }
  if (largest != nullptr) parts.push_back(fmt::format("gradients summed as {}", Name(largest->data_type)));
}

}  // namespace

std::string DescribeJob(const WatchedRun& base, std::optional<double> exposed_share) {
  Parts parts;
  if (base.trainer) AddTrainer(*base.trainer, parts);
  const auto report = std::ranges::find_if(base.reports, &HookReport::uses_framework);
  if (report != base.reports.end() && report->ddp)
    AddDdp(*report->ddp, parts);
  else if (report != base.reports.end() && report->deepspeed)
    AddDeepSpeed(*report->deepspeed, parts);
  else if (report != base.reports.end())
    AddFsdp2(*report->fsdp2, *base.step, parts);
  if (base.step->shard_ranks > 0)
    parts.push_back(
        fmt::format("states divided over {} of {} ranks", base.step->shard_ranks, base.step->ranks));
  AddReduceType(*base.step, parts);
  if (exposed_share)
    parts.push_back(
        fmt::format("{:.0f} % of a step waits for communication (simulated)", 100 * *exposed_share));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string CallsOfStep(const RecordedStep& step) {
  std::string text;
  for (int i = 0; i < kTunableCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    uint64_t bytes = 0;
    for (const WireOperation& operation : step.operations)
      if (operation.collective == collective) bytes += operation.Bytes();
    if (const size_t calls = CountOf(step, collective); calls > 0)
      text += fmt::format("{}{} {}{} of {} together", text.empty() ? "" : ", ", calls, Name(collective),
                          calls == 1 ? "" : "s", FormatBytes(bytes));
  }
  return text;
}

}  // namespace dynamiccl
