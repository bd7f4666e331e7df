// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/change_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/advise/advice.h"
#include "tools/tune/deepspeed_settings.h"

namespace dynamiccl {
namespace {

constexpr double kBytesOfMegabyte = 1 << 20;
// The simulated job must make at least this share of the recorded calls. Otherwise it is not the user's job.
constexpr double kFewestCalls = 0.9;

std::string BytesOf(double megabytes) {
  return std::to_string(std::max<int64_t>(1, std::llround(megabytes * kBytesOfMegabyte)));
}

// Returns a DDP job with the parameters that the hook reported. Its first bucket may have PyTorch's default
// cap or, if the script passes bucket_cap_mb, that cap. The recorded calls show which of the two is right.
Result<AdvisedJob> DdpJob(const DdpReport& report, const RecordedStep& step) {
  if (report.parameters.empty() || report.constructed != 1)
    return MakeError(ErrorKind::kUnsupported, "which parameters share a bucket is not known");
  const DataType type = step.operations.front().data_type;
  AdvisedJob job{.framework = "ddp", .model = {}, .world = {step.ranks, 1, 0}, .settings = {}};
  for (size_t i = 0; i < report.parameters.size(); ++i)
    job.model.parameters.push_back(
        {fmt::format("p{}", i), {static_cast<int64_t>(report.parameters[i] / ElementBytes(type))}});
  job.settings["bucket_bytes"] = BytesOf(report.bucket_cap_mb);
  job.settings["broadcast_buffers"] = "false";
  AdvisedJob named = job;
  named.settings["first_bucket_bytes"] = job.settings["bucket_bytes"];
  DYNAMICCL_TRY(const double by_default, ShareOfCalls(job, step));
  DYNAMICCL_TRY(const double by_name, ShareOfCalls(named, step));
  return by_name > by_default ? named : job;
}

Result<AdvisedJob> Fsdp2Job(const RecordedStep& step) {
  DYNAMICCL_TRY(RecognisedJob recognised, RecogniseJob(step));
  if (recognised.job.framework != "fsdp2")
    return MakeError(ErrorKind::kUnsupported, "the calls are not those of sharded units");
  return std::move(recognised.job);
}

// Returns the step without the scalars between its gradients, such as losses and norms. No setting changes
// them.
RecordedStep WithoutScalars(RecordedStep step) {
  constexpr uint64_t kScalarBytes = 4096;
  std::vector<int64_t> issued;
  std::vector<WireOperation> kept;
  for (size_t i = 0; i < step.operations.size(); ++i) {
    if (step.operations[i].Bytes() <= kScalarBytes) continue;
    kept.push_back(step.operations[i]);
    if (i < step.issued_ns.size()) issued.push_back(step.issued_ns[i]);
  }
  step.operations = std::move(kept);
  step.issued_ns = std::move(issued);
  return step;
}

const HookReport* ReportOf(const std::vector<HookReport>& reports) {
  const auto found = std::ranges::find_if(reports, &HookReport::uses_framework);
  return found == reports.end() ? nullptr : &*found;
}

// Changes the settings of the simulated job as a setting of the framework would. Returns false if the
// simulator does not know the setting.
bool SetText(const std::string& setting, const Json& value, SettingTexts& settings) {
  if (setting == "ddp.bucket_cap_mb")
    settings["bucket_bytes"] = settings["first_bucket_bytes"] = BytesOf(value.get<double>());
  else if (setting == "ddp.first_bucket_mb")
    settings["first_bucket_bytes"] = BytesOf(value.get<double>());
  else if (setting == "fsdp2.reshard_after_forward")
    settings["reshard_after_forward"] = value.get<bool>() ? "true" : "false";
  else if (setting == "fsdp2.forward_prefetch")
    settings["forward_prefetch"] = std::to_string(std::max(1, value.get<int>()));
  else if (setting == "fsdp2.backward_prefetch")
    settings["backward_depth"] = std::to_string(std::max(1, value.get<int>()));
  else if (setting == "zero.bucket_bytes")
    settings["bucket_bytes"] = std::to_string(BucketBytesOf(value));
  else if (setting == "zero.overlap" || setting == "zero.prefetch")
    settings[setting.substr(setting.find('.') + 1)] = value.get<bool>() ? "true" : "false";
  else
    return false;
  return true;
}

// The first part of a setting's name: "ddp" in "ddp.bucket_cap_mb". The simulated job of DeepSpeed also names
// its stage.
std::string GroupOf(const AdvisedJob& job) {
  if (job.framework.starts_with("deepspeed")) return "deepspeed.";
  return (job.IsTrainer() ? "zero" : job.framework) + ".";
}

bool Set(const std::string& setting, const Json& value, AdvisedJob& job) {
  if (setting.starts_with("deepspeed."))
    return SetDeepSpeed(setting.substr(std::string_view("deepspeed.").size()), value, job);
  if (setting != "fsdp2.shard_ranks") return SetText(setting, value, job.settings);
  job.world.shard = value.get<int>();
  return true;
}

// A job as the simulator knows it, and the recorded step in which its calls are found.
struct KnownJob {
  AdvisedJob job;
  RecordedStep step;
  bool on_host = false;
};

Result<AdvisedJob> JobOf(const HookReport& report, const RecordedStep& step) {
  if (report.ddp) return DdpJob(*report.ddp, step);
  return report.fsdp2 ? Fsdp2Job(step) : DeepSpeedJob(*report.deepspeed, step);
}

// The trainer's scalars stay in the step, because the time of its optimizer follows from them.
Result<KnownJob> KnownJobOf(const WatchedRun& base) {
  if (base.trainer) return KnownJob{*base.trainer, *base.step, base.on_host};
  const HookReport* const report = ReportOf(base.reports);
  if (report == nullptr)
    return MakeError(ErrorKind::kUnsupported, "no DDP, no FSDP2 and no DeepSpeed was seen");
  // DeepSpeed's own scalars are calls that the simulated job has too.
  KnownJob known{.job = {}, .step = report->deepspeed ? *base.step : WithoutScalars(*base.step)};
  if (known.step.operations.empty()) return MakeError(ErrorKind::kUnsupported, "the step has scalars only");
  DYNAMICCL_TRY(known.job, JobOf(*report, known.step));
  known.on_host = report->on_host();
  return known;
}

}  // namespace

Result<ChangePrediction> ChangePrediction::From(const WatchedRun& base) {
  DYNAMICCL_TRY(const KnownJob known, KnownJobOf(base));
  const RecordedStep& step = known.step;
  ChangePrediction made;
  made.job_ = known.job;
  DYNAMICCL_TRY(const double share, ShareOfCalls(made.job_, step));
  if (share < kFewestCalls)
    return MakeError(ErrorKind::kUnsupported, "only {:.0f} % of the calls are those of {} as it is known",
                     100 * share, made.job_.framework);
  DYNAMICCL_TRY(made.system_, SystemOfTimes(step));
  made.ranks_per_node_ = step.ranks_per_node;
  if (known.on_host) made.seen_ = HostSchedule(made.job_, step);
  const StepPrediction prediction(made.system_, made.ranks_per_node_, made.seen_);
  DYNAMICCL_TRY(made.compute_, prediction.ComputeOf(made.job_, step, step.step_ns));
  DYNAMICCL_TRY(made.own_, prediction.Of(made.job_, made.compute_));
  return made;
}

std::optional<AdvisedJob> ChangePrediction::JobWith(const Candidate& candidate) const {
  if (!candidate.config.empty() || candidate.values.empty()) return std::nullopt;
  AdvisedJob job = job_;
  for (const auto& [setting, value] : candidate.values)
    if (!setting.starts_with(GroupOf(job)) || !Set(setting, value, job)) return std::nullopt;
  return job;
}

std::optional<double> ChangePrediction::RatioOf(const Candidate& candidate) const {
  const std::optional<AdvisedJob> job = JobWith(candidate);
  if (!job || own_.step_ns <= 0) return std::nullopt;
  const auto predicted = StepPrediction(system_, ranks_per_node_, seen_).Of(*job, compute_);
  if (!predicted) return std::nullopt;
  return static_cast<double>(predicted->step_ns) / static_cast<double>(own_.step_ns);
}

double ChangePrediction::ExposedShare() const {
  if (own_.step_ns <= 0) return 0;
  return static_cast<double>(own_.exposed_ns) / static_cast<double>(own_.step_ns);
}

std::vector<std::pair<Collective, uint64_t>> ChangePrediction::CallsOf(const Candidate& candidate) const {
  const std::optional<AdvisedJob> job = candidate.values.empty() ? job_ : JobWith(candidate);
  std::vector<std::pair<Collective, uint64_t>> calls;
  const bool bucketed =
      job && (job->framework == "ddp" ||
              (job->IsTrainer() && std::ranges::all_of(candidate.values, [](const auto& value) {
                 return value.first == "zero.bucket_bytes";
               })));
  const bool waits = job && seen_.host_waits;
  if (!bucketed && !waits) return calls;
  const auto operations = OperationsOf(*job);
  if (operations)
    for (const WireOperation& operation : *operations)
      calls.emplace_back(operation.collective, operation.Bytes());
  if (waits) std::ranges::sort(calls);
  return calls;
}

std::vector<Forecast> ForecastsOf(const ChangePrediction& prediction,
                                  const std::vector<Candidate>& candidates) {
  std::map<std::vector<std::pair<Collective, uint64_t>>, std::string> with_calls = {
      {prediction.CallsOf({}), "default"}};
  std::vector<Forecast> forecasts;
  for (const Candidate& candidate : candidates) {
    Forecast& forecast = forecasts.emplace_back(Forecast{.setting = candidate.Name()});
    const std::optional<double> ratio = prediction.RatioOf(candidate);
    if (!ratio) continue;
    forecast.ratio = *ratio;
    const auto calls = prediction.CallsOf(candidate);
    const auto [first, is_new] = with_calls.try_emplace(calls, forecast.setting);
    if (!calls.empty() && !is_new)
      forecast.not_tried = "it makes the same calls as " + first->second;
    else if (*ratio > 1 + kPredictionError)
      forecast.not_tried = fmt::format("it is predicted to lose {:.0f} %, and predictions err by {:.0f} %",
                                       100 * (*ratio - 1), 100 * kPredictionError);
  }
  // A change without a prediction may win or lose, so it is sorted as if it changed nothing.
  std::ranges::stable_sort(forecasts, {}, [](const Forecast& one) { return one.ratio == 0 ? 1 : one.ratio; });
  return forecasts;
}

void Apply(const std::vector<Forecast>& forecasts, CandidateList& list) {
  std::vector<Candidate> rest = std::move(list.framework);
  list.framework.clear();
  for (const Forecast& forecast : forecasts) {
    const auto found =
        std::ranges::find(rest, forecast.setting, [](const Candidate& one) { return one.Name(); });
    if (found == rest.end()) continue;
    if (forecast.ratio > 0) found->predicted = forecast.ratio;
    found->not_tried = forecast.not_tried;
    (forecast.not_tried.empty() ? list.framework : list.not_tried).push_back(std::move(*found));
    rest.erase(found);
  }
  std::ranges::move(rest, std::back_inserter(list.framework));
}

}  // namespace dynamiccl
