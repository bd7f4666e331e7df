// SPDX-License-Identifier: Apache-2.0
// Reads a model and settings from a step's calls. Labelled steps go through TrainerReader. Unlabelled ones
// are classified by which large collectives occur.
#include "tools/advise/recognised_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// Calls of at most this many bytes are losses, norms and flags; a smaller gradient bucket would be mostly
// latency.
constexpr uint64_t kScalarBytes = 4096;
// From this many calls of one size in a step on, they may be activations (MayBeActivations).
constexpr size_t kManyCalls = 8;
// Bucket size that stands for the trainer's "all": 2^44 bytes.
constexpr const char* kOneBucket = "17592186044416";

using Operations = std::vector<WireOperation>;

// The operations for which `wanted` holds.
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

// The type as settings spell it, so that advice can compare it with their defaults.
std::string TypeText(DataType type) {
  if (type == DataType::kFloat32) return "float32";
  return type == DataType::kFloat16 ? "float16" : std::string(Name(type));
}

std::string Flag(bool value) {
  return value ? "true" : "false";
}

// Reads the trainer's step from its labels. RecogniseJob creates one on its stack and calls Read once.
class TrainerReader {
 public:
  explicit TrainerReader(const RecordedStep& step)
      : step_(step), gradients_(Of(step, [](const WireOperation& one) {
          return one.role == Role::kGradientReduce && one.axis != Axis::kReplicate;
        })) {}

  Result<RecognisedJob> Read();

 private:
  // Sizes of the model's units in elements, root first. Where no gathers show them, buckets are taken for
  // units, with a note.
  std::vector<int64_t> Units();
  Operations Gathers(Role role, Phase phase) const {
    return Of(step_, [&](const WireOperation& one) { return one.role == role && one.phase == phase; });
  }
  // Number of micro-steps: passes over all units, by gathers or by gradients.
  int64_t MicroSteps(const std::vector<int64_t>& units) const;
  // Whether the backward pass gathers twice before its first reduction.
  bool Prefetches() const;
  // Fills the settings of buckets: whether they are units, and their size.
  void Buckets(const std::vector<int64_t>& units, SettingTexts& settings) const;
  // The type of the parameters, from a gather if there is one.
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
      // Each forward pass gathers the root and the blocks; the backward pass gathers the blocks again, but
      // not the root. So the difference between the two numbers of gathers is the number of passes.
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

// Two gathers before the first reduction of the backward pass.
bool TrainerReader::Prefetches() const {
  const auto backward = std::ranges::find(step_.operations, Phase::kBackward,
                                          [](const WireOperation& one) { return one.phase; });
  return step_.operations.end() - backward > 1 && backward[1].role == Role::kParameterGather;
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
  if (step_.stage == ZeroStage::kStage3) settings["prefetch"] = Flag(Prefetches());
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

// Divides the gradients of a job with one recorded AllReduce into equal parameters that share one bucket, so
// that smaller buckets can be predicted. A call that is not larger than the smallest bucket stays whole.
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

// A "ddp" job in which each call is a parameter with a bucket of its own.
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

// An "fsdp2" job whose units are the first gathers. Gathering clearly more than once per reduction means that
// parameters are resharded after the forward pass.
RecognisedJob UnitsOfShards(const RecordedStep& step, const Operations& scatters, Operations gathers) {
  RecognisedJob result;
  // FSDP2 counts as gathering its units twice from 1.5 gathers for each reduction on. There may be fewer than
  // two, because the unit with which the backward pass begins may stay gathered.
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

// Whether all calls in the list use one communicator. With tensor parallelism beside data parallelism they
// use two.
bool OnOneAxis(const Operations& list) {
  return std::ranges::all_of(list, [&](const WireOperation& one) { return one.axis == list.front().axis; });
}

// Whether the calls may be activations of tensor parallelism, which have one size throughout the model. A
// model with as many units or buckets has different sizes, because its first and last layers differ from the
// others.
bool MayBeActivations(const Operations& list) {
  return list.size() >= kManyCalls && std::ranges::all_of(list, [&](const WireOperation& one) {
           return one.elements == list.front().elements;
         });
}

// The large calls of a collective with this recognised role.
Operations LargeOnes(const RecordedStep& step, Collective collective, Role role) {
  return Of(LargeOnes(step, collective), [&](const WireOperation& one) { return one.role == role; });
}

// Recognises a job by recognised roles, where the calls alone do not tell gradients from activations.
// Activations are left out. Returns nothing unless every other large call is a gradient or a parameter
// gather.
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

// Whether ShareOfCalls counts the two calls as equal.
bool SameCall(const WireOperation& a, const WireOperation& b) {
  return a.collective == b.collective && a.data_type == b.data_type && a.elements == b.elements;
}

// Says why the calls name no job, and what to do about it.
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
  size_t most = 0;
  for (size_t first = 0; first < issued.size(); ++first) {
    size_t same = 0;
    while (same < step.operations.size() &&
           SameCall(issued[(first + same) % issued.size()], step.operations[same]))
      ++same;
    most = std::max(most, same);
    if (most == step.operations.size()) break;
  }
  return static_cast<double>(most) / static_cast<double>(std::max(issued.size(), step.operations.size()));
}

}  // namespace dynamiccl
