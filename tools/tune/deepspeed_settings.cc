// SPDX-License-Identifier: Apache-2.0
// DeepSpeed fills a bucket with gradients until the next one would exceed reduce_bucket_size. So no call has
// more elements than that, or than a single parameter, and two calls in a row never fit into one bucket
// together. This holds in any order of the gradients, and so proves the size without a model of the job.
#include "tools/tune/deepspeed_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace dynamiccl {
namespace {

constexpr std::string_view kPrefix = "deepspeed.";
// Parts of the model's elements to try as a bucket. 1 means one bucket for the whole model.
constexpr double kPartsToReduce[] = {1, 0.25, 0.0625};
// Parts of the model's elements to prefetch in stage 3. 0 switches prefetching off.
constexpr double kPartsToPrefetch[] = {0.25, 0.0625, 0};
// Elements by which each of a call's parameters may be padded, for each rank.
constexpr int64_t kPadding = 2;

int64_t Sum(const std::vector<int64_t>& elements) {
  return std::accumulate(elements.begin(), elements.end(), int64_t{0});
}

int64_t Largest(const std::vector<int64_t>& elements) {
  return elements.empty() ? 0 : *std::ranges::max_element(elements);
}

// Rounds up to two digits, so that a user can read the number.
int64_t Rounded(double elements) {
  if (elements < 1) return 0;
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(elements)) - 1));
  return static_cast<int64_t>(std::ceil(elements / unit) * unit);
}

int64_t ValueOf(const DeepSpeedReport& report, const char* name) {
  const auto found = report.values.find(name);
  return found != report.values.end() && found->second.is_number_integer() ? found->second.get<int64_t>() : 0;
}

// Adds sizes of a bucket. Sizes that hold the whole model all make the same calls, so one of them is enough.
void AddSizes(const DeepSpeedReport& report, const char* name, std::span<const double> parts,
              std::vector<Candidate>& candidates) {
  if (!report.values.contains(name)) return;
  const int64_t own = ValueOf(report, name), whole = Sum(report.parameters);
  for (const double part : parts) {
    const int64_t size = Rounded(part * static_cast<double>(whole));
    if (size == own || (size >= whole && own >= whole)) continue;
    candidates.push_back({.values = {{std::string(kPrefix) + name, size}}});
    if (size > own) candidates.back().remark = fmt::format("needs memory for {} elements at once", size);
  }
}

void AddOverlap(const DeepSpeedReport& report, std::vector<Candidate>& candidates) {
  const auto own = report.values.find("overlap_comm");
  if (own == report.values.end() || !own->second.is_boolean()) return;
  const bool other = !own->second.get<bool>();
  candidates.push_back({.values = {{"deepspeed.overlap_comm", other}},
                        .remark = other ? "needs a second bucket of memory" : ""});
}

// The calls of `collective` that carry more than scalars, such as norms.
std::vector<int64_t> SizesOf(const RecordedStep& step, Collective collective, int64_t smallest) {
  std::vector<int64_t> sizes;
  for (const WireOperation& one : step.operations)
    if (one.collective == collective && one.elements >= smallest) sizes.push_back(one.elements);
  return sizes;
}

int64_t Smallest(const DeepSpeedReport& report) {
  return report.parameters.empty() ? 1 : *std::ranges::min_element(report.parameters);
}

int64_t PaddingOf(const DeepSpeedReport& report, const RecordedStep& step) {
  return kPadding * step.ranks * static_cast<int64_t>(report.parameters.size());
}

Judgement JudgeReduceBuckets(int64_t limit, const DeepSpeedReport& report, const RecordedStep& step) {
  const Collective collective = report.stage == 3 ? Collective::kReduceScatter : Collective::kAllReduce;
  const std::vector<int64_t> sizes = SizesOf(step, collective, Smallest(report));
  if (sizes.empty()) return NotProvable("the framework has it; no call of the gradients was recorded");
  const std::string seen =
      fmt::format("{} a step, of at most {} elements",
                  Counted(sizes.size(), collective == Collective::kAllReduce ? "AllReduce" : "ReduceScatter"),
                  Largest(sizes));
  if (Largest(sizes) > std::max(limit, Largest(report.parameters)) + PaddingOf(report, step))
    return NotInEffect(seen);
  for (size_t i = 1; report.micro_steps == 1 && i < sizes.size(); ++i)
    if (sizes[i - 1] + sizes[i] <= limit)
      return NotInEffect(fmt::format("{}: two in a row have {} and {}", seen, sizes[i - 1], sizes[i]));
  return InEffect(seen);
}

// DeepSpeed divides a group of parameters into calls of less than twice the limit.
Judgement JudgeGatherBuckets(int64_t limit, const DeepSpeedReport& report, const RecordedStep& step) {
  const std::vector<int64_t> sizes = SizesOf(step, Collective::kAllGather, Smallest(report));
  if (sizes.empty()) return NotProvable("the framework has it; no AllGather was recorded");
  const std::string seen =
      fmt::format("{} a step, of at most {} elements", Counted(sizes.size(), "AllGather"), Largest(sizes));
  if (Largest(sizes) > 2 * limit)
    return NotInEffect(seen + ": DeepSpeed does not read it where torch has all_gather_into_tensor");
  return sizes.size() > 1 ? InEffect(seen) : NotProvable(seen);
}

Judgement JudgePrefetch(int64_t limit, const DeepSpeedReport& report, const RecordedStep& step) {
  const int64_t largest = Largest(SizesOf(step, Collective::kAllGather, Smallest(report)));
  const int64_t padding = PaddingOf(report, step);
  const std::string seen = fmt::format("AllGathers of at most {} elements, the largest module has {}",
                                       largest, report.largest_module);
  if (largest == 0) return NotProvable("the framework has it; no AllGather was recorded");
  if (largest > std::max(report.largest_module, limit + Largest(report.parameters)) + padding)
    return NotInEffect(seen);
  const bool several = largest > report.largest_module + padding;
  return several || limit == 0 ? InEffect(seen) : NotProvable(seen);
}

// Parameters that stay gathered are gathered one by one after the optimizer. These are the last calls of a
// step.
Judgement JudgePersistence(int64_t threshold, const DeepSpeedReport& report, const RecordedStep& step) {
  const auto last = std::find_if(step.operations.rbegin(), step.operations.rend(), [](const auto& one) {
    return one.collective == Collective::kReduceScatter;
  });
  if (last == step.operations.rend() || !step.marked)
    return NotProvable("the framework has it; no marked step with a ReduceScatter was recorded");
  const auto gathers = std::count_if(step.operations.rbegin(), last, [](const auto& one) {
    return one.collective == Collective::kAllGather;
  });
  const auto stay = std::ranges::count_if(report.parameters, [&](int64_t one) { return one <= threshold; });
  const std::string seen = fmt::format("{} after the optimizer, {} of {} parameters have at most {} elements",
                                       Counted(static_cast<size_t>(gathers), "AllGather"), stay,
                                       report.parameters.size(), threshold);
  return gathers == stay ? InEffect(seen) : NotInEffect(seen);
}

}  // namespace

std::vector<Candidate> DeepSpeedCandidates(const DeepSpeedReport& report) {
  std::vector<Candidate> candidates;
  AddSizes(report, "reduce_bucket_size", kPartsToReduce, candidates);
  AddOverlap(report, candidates);
  AddSizes(report, "stage3_prefetch_bucket_size", kPartsToPrefetch, candidates);
  if (ValueOf(report, "stage3_param_persistence_threshold") > 0)
    candidates.push_back({.values = {{"deepspeed.stage3_param_persistence_threshold", 0}}});
  return candidates;
}

Judgement JudgeDeepSpeed(const std::string& setting, const Json& asked, const DeepSpeedReport& report,
                         const RecordedStep& step) {
  const std::string name = setting.substr(kPrefix.size());
  if (name == "overlap_comm") return NotProvable("the framework has it; it changes no call");
  const auto value = asked.get<int64_t>();
  if (name == "reduce_bucket_size") return JudgeReduceBuckets(value, report, step);
  if (name == "allgather_bucket_size") return JudgeGatherBuckets(value, report, step);
  if (name == "stage3_prefetch_bucket_size") return JudgePrefetch(value, report, step);
  return JudgePersistence(value, report, step);
}

Result<AdvisedJob> DeepSpeedJob(const DeepSpeedReport& report, const RecordedStep& step) {
  if (report.constructed != 1 || report.names.size() != report.parameters.size() || report.names.empty())
    return MakeError(ErrorKind::kUnsupported, "the parameters of DeepSpeed's engine are not known");
  AdvisedJob job{.framework = fmt::format("deepspeed{}", report.stage),
                 .model = {},
                 .world = {step.ranks, 1, 0},
                 .settings = {}};
  for (size_t i = 0; i < report.names.size(); ++i)
    job.model.parameters.push_back({report.names[i], {report.parameters[i]}});
  const DataType type = step.operations.front().data_type;
  job.settings["dtype"] = type == DataType::kFloat32   ? "float32"
                          : type == DataType::kFloat16 ? "float16"
                                                       : Name(type);
  job.settings["accumulation_steps"] = std::to_string(report.micro_steps);
  for (const auto& [name, value] : report.values)
    if (!value.is_null()) SetDeepSpeed(name, value, job);
  return job;
}

bool SetDeepSpeed(const std::string& name, const Json& value, AdvisedJob& job) {
  const std::string own =
      name.starts_with("stage3_") ? name.substr(std::string_view("stage3_").size()) : name;
  if (SettingOf(job, own).empty()) return false;
  job.settings[own] = value.dump();
  return true;
}

std::string DeepSpeedLines(const FrameworkValues& values) {
  std::vector<std::string> members;
  for (const auto& [setting, value] : values)
    if (setting.starts_with(kPrefix))
      members.push_back(fmt::format("\"{}\": {}", setting.substr(kPrefix.size()), value.dump()));
  return members.empty() ? "" : fmt::format("\"zero_optimization\": {{{}}}\n", fmt::join(members, ", "));
}

}  // namespace dynamiccl
