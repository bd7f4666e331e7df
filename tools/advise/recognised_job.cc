// SPDX-License-Identifier: Apache-2.0
// Works out the model and the settings of a job from the calls of one step. TrainerReader reads steps whose
// calls are labelled. Other steps are classified by which large collectives occur.
#include "tools/advise/recognised_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// Calls of at most this many bytes are taken for losses, norms and flags, not for gradients: a gradient
// bucket this small would cost mostly latency.
constexpr uint64_t kScalarBytes = 4096;
// If a step has at least this many calls of one size, they may be activations (see MayBeActivations).
constexpr size_t kManyCalls = 8;
// The bucket size, 2^44 bytes, that means one bucket for all gradients (the trainer's `--bucket-bytes all`).
constexpr const char* kOneBucket = "17592186044416";

using Operations = std::vector<WireOperation>;

// Returns the operations for which `wanted` returns true.
Operations Of(const Operations& operations, auto&& wanted) {
  Operations list;
  std::ranges::copy_if(operations, std::back_inserter(list), wanted);
  return list;
}
Operations Of(const RecordedStep& step, auto&& wanted) {
  return Of(step.operations, wanted);
}

int64_t ElementsOf(const Operations& operations) {
  int64_t sum = 0;
  for (const WireOperation& operation : operations) sum += operation.elements;
  return sum;
}

// A model with one parameter for each unit: "root.weight", "h.0.weight", "h.1.weight" and so on.
ModelShape ModelOf(const std::vector<int64_t>& units) {
  ModelShape model{.name = "as recorded", .parameters = {}, .transformer = {}};
  for (size_t i = 0; i < units.size(); ++i)
    model.parameters.push_back({i == 0 ? "root.weight" : fmt::format("h.{}.weight", i - 1), {units[i]}});
  return model;
}

std::vector<int64_t> Sizes(const Operations& operations) {
  std::vector<int64_t> sizes;
  for (const WireOperation& operation : operations) sizes.push_back(operation.elements);
  return sizes;
}

// The number type as settings spell it, so that it can be compared with their values.
std::string TypeText(DataType type) {
  if (type == DataType::kFloat32) return "float32";
  return type == DataType::kFloat16 ? "float16" : std::string(Name(type));
}

std::string Flag(bool value) {
  return value ? "true" : "false";
}

// Reads the settings of the project's own trainer from the labels of its calls. RecogniseJob creates a reader
// on its stack and calls Read once.
class TrainerReader {
 public:
  explicit TrainerReader(const RecordedStep& step)
      : step_(step), gradients_(Of(step, [](const WireOperation& one) {
          return one.role == Role::kGradientReduce && one.axis != Axis::kReplicate;
        })) {}

  Result<RecognisedJob> Read();

 private:
  // Elements of each unit of the model, the root unit first. A unit is a group of parameters that ZeRO
  // gathers together. If no gathers show the units, each gradient bucket is taken for a unit, and a note says
  // so.
  std::vector<int64_t> Units();
  Operations Gathers(Role role, Phase phase) const {
    return Of(step_, [&](const WireOperation& one) { return one.role == role && one.phase == phase; });
  }
  // Number of micro-steps in the step: how often its gathers, or else its gradients, cover all units.
  int64_t MicroSteps(const std::vector<int64_t>& units) const;
  // True if the backward pass prefetches: it then gathers two units before its first reduction.
  bool Prefetches() const;
  // How many units the backward pass gathers ahead, at least 1.
  int64_t UnitsAhead(const std::vector<int64_t>& units) const;
  // Sets "unit" and "bucket_bytes": whether each gradient bucket holds exactly one unit (parameters that ZeRO
  // gathers together), and the size of the largest bucket.
  void Buckets(const std::vector<int64_t>& units, SettingTexts& settings) const;
  // The type of the parameters: that of a gather or, without gathers, that of the gradients.
  DataType ModelType() const;

  const RecordedStep& step_;
  const Operations gradients_;
  RecognisedJob result_;
};

std::vector<int64_t> TrainerReader::Units() {
  Operations gathers;
  if (step_.stage == ZeroStage::kStage3) {
    gathers = Gathers(Role::kParameterGather, Phase::kForward);
    const Operations backward = Gathers(Role::kParameterGather, Phase::kBackward);
    const size_t blocks_of_passes = backward.size(), all = gathers.size();
    if (all > blocks_of_passes && all % (all - blocks_of_passes) == 0)
      // Each forward pass gathers the root unit and the blocks. The backward pass gathers only the blocks
      // again. So forward gathers minus backward gathers is the number of passes.
      gathers.resize(all / (all - blocks_of_passes));
  } else {
    gathers = Gathers(Role::kPostStepGather, Phase::kOptimizer);
  }
  if (!gathers.empty()) return Sizes(gathers);
  result_.notes.emplace_back(
      "the calls do not show the model's units: each gradient bucket is taken for one (the trainer's options "
      "after -- tell them)");
  std::vector<int64_t> units = Sizes(gradients_);
  std::ranges::reverse(units);
  return units;
}

int64_t TrainerReader::MicroSteps(const std::vector<int64_t>& units) const {
  const auto count = static_cast<int64_t>(units.size());
  if (step_.stage == ZeroStage::kStage3)
    return std::max<int64_t>(
        1, static_cast<int64_t>(Gathers(Role::kParameterGather, Phase::kForward).size()) / count);
  int64_t elements = 0;
  for (const int64_t unit : units) elements += unit;
  return std::max<int64_t>(1, (ElementsOf(gradients_) + elements / 2) / elements);
}

// Prefetching shows as two gathers before the first reduction of the backward pass.
bool TrainerReader::Prefetches() const {
  const auto backward = std::ranges::find(step_.operations, Phase::kBackward,
                                          [](const WireOperation& one) { return one.phase; });
  return step_.operations.end() - backward > 1 && backward[1].role == Role::kParameterGather;
}

// The first reduction is issued once the gradients of the last units fill a bucket. By then those units and
// the units ahead have been gathered.
int64_t TrainerReader::UnitsAhead(const std::vector<int64_t>& units) const {
  const auto begin = std::ranges::find(step_.operations, Phase::kBackward,
                                       [](const WireOperation& one) { return one.phase; });
  const auto reduced = std::find_if(begin, step_.operations.end(), [](const WireOperation& one) {
    return one.role == Role::kGradientReduce;
  });
  int64_t reduced_units = 0, elements = 0;
  for (size_t unit = units.size(); unit-- > 0 && elements < gradients_.front().elements; ++reduced_units)
    elements += units[unit];
  const auto gathered = std::count_if(
      begin, reduced, [](const WireOperation& one) { return one.role == Role::kParameterGather; });
  return std::max<int64_t>(1, gathered - reduced_units);
}

void TrainerReader::Buckets(const std::vector<int64_t>& units, SettingTexts& settings) const {
  std::vector<int64_t> reversed = Sizes(gradients_);
  std::ranges::reverse(reversed);
  const bool by_unit = units.size() > 1 && reversed == units;
  settings["unit"] = by_unit && step_.stage != ZeroStage::kStage0 ? "parameter" : "block";
  uint64_t largest = 0;
  for (const WireOperation& one : gradients_) largest = std::max(largest, one.Bytes());
  settings["bucket_bytes"] = gradients_.size() > 1 ? std::to_string(largest) : kOneBucket;
}

DataType TrainerReader::ModelType() const {
  for (const WireOperation& one : step_.operations)
    if (one.role == Role::kParameterGather || one.role == Role::kPostStepGather) return one.data_type;
  return gradients_.front().data_type;
}

Result<RecognisedJob> TrainerReader::Read() {
  const bool owner = std::ranges::any_of(
      step_.operations, [](const WireOperation& one) { return one.collective == Collective::kReduce; });
  if (gradients_.empty() || step_.stage == ZeroStage::kUnknown || owner)
    return WithHint(MakeError(ErrorKind::kUnsupported, "the labelled calls are not a step of ZeRO as known"),
                    "name the job: --framework with --model, or the trainer's options after --");
  AdvisedJob& job = result_.job;
  const std::vector<int64_t> units = Units();
  job.framework = kTrainer;
  job.model = ModelOf(units);
  job.world = {step_.ranks, 1, step_.shard_ranks};
  SettingTexts& settings = job.settings;
  settings["stage"] = std::to_string(static_cast<int>(step_.stage));
  settings["dtype"] = TypeText(ModelType());
  settings["reduce_type"] = TypeText(gradients_.front().data_type);
  settings["micro_steps"] = std::to_string(MicroSteps(units));
  if (step_.stage == ZeroStage::kStage3) {
    settings["prefetch"] = Flag(Prefetches());
    if (Prefetches()) settings["prefetch_units"] = std::to_string(UnitsAhead(units));
  }
  const bool replicates = step_.stage == ZeroStage::kStage1 || step_.stage == ZeroStage::kStage2;
  if (replicates && gradients_.front().collective == Collective::kAllReduce)
    settings["exchange"] = "all_reduce";
  Buckets(units, settings);
  result_.what = fmt::format("ZeRO stage {} by its labels, {} units, {} numbers", settings["stage"],
                             units.size(), job.model.Elements());
  return std::move(result_);
}

bool Large(const WireOperation& one) {
  return one.Bytes() > kScalarBytes;
}

Operations LargeOnes(const RecordedStep& step, Collective collective) {
  return Of(step, [&](const WireOperation& one) { return one.collective == collective && Large(one); });
}

// For a job with one recorded AllReduce: divides the gradients into equal parameters that share one bucket,
// so that the effect of smaller buckets can be predicted. A call of at most kSmallestBucket bytes is not
// divided.
void DivideOneBucket(const WireOperation& reduce, RecognisedJob& result) {
  constexpr int64_t kParts = 64;
  constexpr uint64_t kSmallestBucket = 1 << 20;
  if (reduce.Bytes() <= kSmallestBucket) {
    result.notes.push_back(fmt::format("the one AllReduce has {}: no smaller bucket is worth trying",
                                       FormatBytes(reduce.Bytes())));
    return;
  }
  std::vector<int64_t> sizes(kParts, reduce.elements / kParts);
  sizes.front() += reduce.elements % kParts;
  result.job.model = ModelOf(sizes);
  result.job.settings["bucket_bytes"] = result.job.settings["first_bucket_bytes"] = kOneBucket;
  result.notes.push_back(
      fmt::format("the one AllReduce of {} is taken for all gradients in one bucket, divided evenly here; "
                  "--framework ddp with "
                  "--model or a list of parameters knows where",
                  FormatBytes(reduce.Bytes())));
}

// Describes the step as a "ddp" job. Each AllReduce is taken for one parameter that has a bucket of its own.
RecognisedJob AllReducesOf(const RecordedStep& step, const Operations& reduces) {
  RecognisedJob result;
  std::vector<int64_t> sizes = Sizes(reduces);
  std::ranges::reverse(sizes);
  result.job.framework = "ddp";
  result.job.model = ModelOf(sizes);
  result.job.world = {step.ranks, 1, 0};
  result.job.settings = {
      {"dtype", TypeText(reduces.front().data_type)}, {"bucket_bytes", "1"}, {"first_bucket_bytes", "1"}};
  if (step.paced)
    result.notes.push_back(
        fmt::format("the last {} calls are equal and come at one pace, so each is taken for a step; if they "
                    "are layers of one "
                    "step, mark the steps or name the job",
                    step.steps));
  result.what = fmt::format(
      "data parallelism: {} AllReduce{} of {}{}", reduces.size(), reduces.size() == 1 ? "" : "s",
      FormatBytes(static_cast<uint64_t>(ElementsOf(reduces)) * ElementBytes(reduces.front().data_type)),
      reduces.size() == 1 ? "" : " together");
  if (reduces.size() == 1) {
    DivideOneBucket(reduces.front(), result);
    return result;
  }
  result.notes.emplace_back(
      "without labels every AllReduce above 4 KiB is taken for gradients; calls can be merged here, and not "
      "divided: --framework ddp with --model or a list of parameters knows where");
  return result;
}

// Describes the step as an "fsdp2" job. The first gathers show its units. If the step gathers clearly more
// often than it reduces, parameters are resharded after the forward pass.
RecognisedJob UnitsOfShards(const RecordedStep& step, const Operations& scatters, Operations gathers) {
  RecognisedJob result;
  // If there are at least 1.5 gathers for each reduction, the job is taken to gather its units twice. There
  // may be fewer than two, because the unit with which the backward pass begins may stay gathered.
  const bool twice = gathers.size() * 2 >= scatters.size() * 3;
  const size_t again = gathers.size() - scatters.size();
  gathers.resize(std::min(gathers.size(), scatters.size()));
  result.job.framework = "fsdp2";
  result.job.model = ModelOf(Sizes(gathers));
  result.job.world = {step.ranks, 1, step.shard_ranks};
  result.job.settings = {{"dtype", TypeText(gathers.front().data_type)},
                         {"reduce_dtype", TypeText(scatters.front().data_type)},
                         {"reshard_after_forward", Flag(twice)},
                         {"clip", "false"}};
  result.what =
      fmt::format("sharded parameters: {} units, {}", gathers.size(),
                  twice ? fmt::format("{} of them gathered twice a step", std::min(again, gathers.size()))
                        : "gathered once a step");
  result.notes.emplace_back("without labels the first gathers are taken for the model's units");
  return result;
}

// True if all calls in the list use one communicator. A job with tensor parallelism and data parallelism uses
// two.
bool OnOneAxis(const Operations& list) {
  return std::ranges::all_of(list, [&](const WireOperation& one) { return one.axis == list.front().axis; });
}

// True if the calls may be activations of tensor parallelism, which have the same size in every layer. Many
// parameter units or gradient buckets would not all have one size, because a model's first and last layers
// differ from the others.
bool MayBeActivations(const Operations& list) {
  return list.size() >= kManyCalls && std::ranges::all_of(list, [&](const WireOperation& one) {
           return one.elements == list.front().elements;
         });
}

// The calls of this collective and recognised role that are larger than kScalarBytes.
Operations LargeOnes(const RecordedStep& step, Collective collective, Role role) {
  return Of(LargeOnes(step, collective), [&](const WireOperation& one) { return one.role == role; });
}

// Recognises a job from the roles that the LSTM found, where the calls alone do not tell gradients from
// activations. Leaves activations out. Returns nothing if some other large call is neither a gradient nor a
// parameter gather.
std::optional<RecognisedJob> JobByRoles(const RecordedStep& step) {
  if (step.recognised_by.empty()) return std::nullopt;
  const Operations reduces = LargeOnes(step, Collective::kAllReduce, Role::kGradientReduce);
  const Operations scatters = LargeOnes(step, Collective::kReduceScatter, Role::kGradientReduce);
  const Operations gathers = LargeOnes(step, Collective::kAllGather, Role::kParameterGather);
  const Operations activations =
      Of(step, [](const WireOperation& one) { return Large(one) && one.role == Role::kActivation; });
  const size_t large = Of(step, Large).size();
  const bool shards = !scatters.empty() && gathers.size() >= scatters.size() && reduces.empty() &&
                      scatters.size() + gathers.size() + activations.size() == large && OnOneAxis(gathers) &&
                      OnOneAxis(scatters) && gathers[0].axis == scatters[0].axis;
  const bool reduced = !reduces.empty() && reduces.size() + activations.size() == large && OnOneAxis(reduces);
  if (!shards && !reduced) return std::nullopt;
  RecognisedJob job = shards ? UnitsOfShards(step, scatters, gathers) : AllReducesOf(step, reduces);
  job.notes.push_back(
      fmt::format("which calls are gradients, parameters or activations is what the LSTM of {} recognises{}",
                  step.recognised_by,
                  activations.empty() ? "" : fmt::format("; {} calls are activations", activations.size())));
  return job;
}

// True if ShareOfCalls counts the two calls as equal.
bool SameCall(const WireOperation& a, const WireOperation& b) {
  return a.collective == b.collective && a.data_type == b.data_type && a.elements == b.elements;
}

// Returns an error that says why no job was recognised from the calls, and what the user can do.
Error NotRecognised(const RecordedStep& step) {
  const WireOperation& first = step.operations.front();
  const bool equal =
      std::ranges::all_of(step.operations, [&](const WireOperation& one) { return SameCall(one, first); });
  std::string message =
      fmt::format("the step's {} calls are not surely gradients that are all reduced, or sharded parameters",
                  step.operations.size());
  if (equal && step.operations.size() > 1)
    message = fmt::format(
        "all {} calls are {} of {}, and neither marks nor pauses show where a step ends: they may be "
        "gradients or "
        "activations",
        step.operations.size(), Name(first.collective), FormatBytes(first.Bytes()));
  return {ErrorKind::kUnsupported, message,
          equal ? "name the job, --framework with --model and --set, and its step, --step-ms; or give a "
                  "profile whose "
                  "steps are marked (torch.profiler's step())"
                : "name the job: --framework with --model, and --set for its settings"};
}

}  // namespace

Result<RecognisedJob> RecogniseJob(const RecordedStep& step) {
  if (step.labelled && step.stage != ZeroStage::kUnknown) return TrainerReader(step).Read();
  const Operations reduces = LargeOnes(step, Collective::kAllReduce);
  const Operations scatters = LargeOnes(step, Collective::kReduceScatter);
  const Operations gathers = LargeOnes(step, Collective::kAllGather);
  const bool one_axis = OnOneAxis(scatters) && OnOneAxis(gathers) &&
                        (scatters.empty() || gathers.empty() || scatters[0].axis == gathers[0].axis);
  const bool shards = !scatters.empty() && gathers.size() >= scatters.size() && one_axis;
  if (shards && !MayBeActivations(gathers)) return UnitsOfShards(step, scatters, gathers);
  const bool is_activation = step.paced && !step.recognised_by.empty() && !reduces.empty() &&
                             reduces.front().role == Role::kActivation;
  const bool reduces_only =
      !reduces.empty() && scatters.empty() && gathers.empty() && OnOneAxis(reduces) && !is_activation;
  if (reduces_only && !MayBeActivations(reduces)) return AllReducesOf(step, reduces);
  if (auto job = JobByRoles(step)) return std::move(*job);
  return tl::unexpected(NotRecognised(step));
}

Result<double> ShareOfCalls(const AdvisedJob& job, const RecordedStep& step) {
  DYNAMICCL_TRY(const Operations issued, OperationsOf(job));
  if (issued.empty() || step.operations.empty()) return 0;
  const Operations recorded = Of(step, [&](const WireOperation& one) {
    return std::ranges::any_of(issued, [&](const WireOperation& other) { return SameCall(one, other); });
  });
  size_t most = 0;
  for (size_t first = 0; first < issued.size() && most < recorded.size(); ++first) {
    size_t same = 0;
    while (same < recorded.size() && SameCall(issued[(first + same) % issued.size()], recorded[same])) ++same;
    most = std::max(most, same);
  }
  return static_cast<double>(most) / static_cast<double>(std::max(issued.size(), step.operations.size()));
}

}  // namespace dynamiccl
