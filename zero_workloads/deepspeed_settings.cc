// SPDX-License-Identifier: Apache-2.0
// Translates DeepSpeed's keys into options of this trainer, with the meanings of DeepSpeed's documentation
// for version 0.19 (deepspeed.ai/docs/config-json). If a key is absent, the trainer's own default applies. A
// note says where DeepSpeed's default differs.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "zero_workloads/settings_file.h"

namespace dynamiccl::zero {
namespace {

using Json = nlohmann::json;

// Says how a key is translated.
enum class Meaning {
  // The option takes the key's value as it is.
  kValue,
  // A boolean key: true becomes the option, false the option's --no- form.
  kFlag,
  // The trainer supports only the value that `option` holds. Any other value is an error.
  kIs,
  // The key selects another way to the same result. A note says that the key has no effect here.
  kNoMatter,
  // The key is read together with others, by the Read functions below.
  kTogether,
};

// A key of DeepSpeed's configuration, with its dotted name and how it is translated.
struct Key {
  const char* name;
  Meaning meaning;
  const char* option = "";
};

// Every key that is understood. docs/zero_trainer.md lists them for users.
constexpr Key kKeys[] = {
    {"zero_optimization.stage", Meaning::kValue, "--stage"},
    {"zero_optimization.overlap_comm", Meaning::kFlag, "--overlap"},
    {"zero_optimization.reduce_scatter", Meaning::kTogether},
    {"zero_optimization.reduce_bucket_size", Meaning::kTogether},
    {"zero_optimization.contiguous_gradients", Meaning::kIs, "true"},
    {"zero_optimization.allgather_partitions", Meaning::kIs, "true"},
    {"zero_optimization.allgather_bucket_size", Meaning::kNoMatter},
    {"zero_optimization.stage3_prefetch_bucket_size", Meaning::kNoMatter},
    {"zero_optimization.stage3_max_live_parameters", Meaning::kNoMatter},
    {"zero_optimization.stage3_max_reuse_distance", Meaning::kNoMatter},
    {"zero_optimization.mics_shard_size", Meaning::kTogether},
    {"zero_optimization.mics_hierarchical_params_gather", Meaning::kIs, "false"},
    {"zero_optimization.zero_hpz_partition_size", Meaning::kTogether},
    {"zero_optimization.zero_quantized_weights", Meaning::kIs, "false"},
    {"zero_optimization.zero_quantized_gradients", Meaning::kIs, "false"},
    {"zero_optimization.offload_optimizer.device", Meaning::kTogether},
    {"zero_optimization.offload_optimizer.nvme_path", Meaning::kTogether},
    {"train_batch_size", Meaning::kTogether},
    {"train_micro_batch_size_per_gpu", Meaning::kTogether},
    {"gradient_accumulation_steps", Meaning::kTogether},
    {"gradient_clipping", Meaning::kValue, "--clip-norm"},
    {"steps_per_print", Meaning::kValue, "--log-every"},
    {"fp16.enabled", Meaning::kTogether},
    {"fp16.loss_scale", Meaning::kTogether},
    {"fp16.initial_scale_power", Meaning::kTogether},
    {"fp16.loss_scale_window", Meaning::kTogether},
    {"fp16.hysteresis", Meaning::kTogether},
    {"fp16.min_loss_scale", Meaning::kTogether},
    {"bf16.enabled", Meaning::kTogether},
    {"communication_data_type", Meaning::kTogether},
    {"data_types.grad_accum_dtype", Meaning::kTogether},
    {"optimizer.type", Meaning::kIs, "\"AdamW\""},
    {"optimizer.params.lr", Meaning::kValue, "--learning-rate"},
    {"optimizer.params.weight_decay", Meaning::kValue, "--weight-decay"},
    {"optimizer.params.betas", Meaning::kTogether},
    {"optimizer.params.eps", Meaning::kValue, "--epsilon"},
    {"scheduler.type", Meaning::kIs, "\"WarmupCosineLR\""},
    {"scheduler.params.warmup_num_steps", Meaning::kValue, "--warmup"},
    {"scheduler.params.total_num_steps", Meaning::kValue, "--steps"},
    {"scheduler.params.warmup_type", Meaning::kIs, "\"linear\""},
    {"scheduler.params.warmup_min_ratio", Meaning::kIs, "0.0"},
    {"scheduler.params.cos_min_ratio", Meaning::kIs, "0.1"},
    {"activation_checkpointing.partition_activations", Meaning::kTogether},
    {"activation_checkpointing.cpu_checkpointing", Meaning::kTogether},
    {"tensor_parallel.autotp_size", Meaning::kValue, "--tensor-parallel"},
    {"wall_clock_breakdown", Meaning::kNoMatter},
};

// The reason that notes give for fp16 keys that have no effect.
constexpr const char* kNoFp16 = "fp16 is not enabled";

// Translates one document. JSON values of an unexpected type throw Json::exception, which
// ReadDeepSpeedSettings turns into an error.
class DeepSpeedReader {
 public:
  DeepSpeedReader(std::string source, int world) : source_(std::move(source)), world_(world) {}

  Result<FileOptions> Read(const Json& document) {
    Flatten("", document);
    for (const auto& [name, value] : leaves_) DYNAMICCL_CHECK_OK(ReadKey(name, value));
    DYNAMICCL_CHECK_OK(ReadPrecision());
    DYNAMICCL_CHECK_OK(ReadBatch());
    DYNAMICCL_CHECK_OK(ReadOffload());
    // The last argument is DeepSpeed's default, which means that no shard group is used.
    DYNAMICCL_CHECK_OK(ReadGroup("zero_optimization.mics_shard_size", "--shard-group", -1));
    DYNAMICCL_CHECK_OK(ReadGroup("zero_optimization.zero_hpz_partition_size", "--secondary-group", 1));
    ReadBucket();
    ReadExchange();
    ReadActivations();
    NoteDefaults();
    return std::move(file_);
  }

 private:
  // Stores the values of the document by their dotted names.
  void Flatten(const std::string& prefix, const Json& value) {
    if (!value.is_object()) {
      leaves_[prefix] = value;
      return;
    }
    for (const auto& [key, child] : value.items()) Flatten(prefix.empty() ? key : prefix + "." + key, child);
  }

  template <typename... Args>
  tl::unexpected<Error> Complain(fmt::format_string<Args...> text, Args&&... args) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: {}", source_,
                     fmt::format(text, std::forward<Args>(args)...));
  }

  void Add(const std::string& key, const std::string& option, std::vector<std::string> values) {
    file_.options.push_back({option, std::move(values), source_ + ": " + key});
  }

  const Json* Find(const std::string& name) const {
    const auto place = leaves_.find(name);
    return place == leaves_.end() || place->second == "auto" ? nullptr : &place->second;
  }

  template <typename T>
  // Returns the key's value, or `otherwise` if the key is absent or "auto".
  T Get(const std::string& name, T otherwise) const {
    const Json* const value = Find(name);
    return value == nullptr ? otherwise : value->get<T>();
  }

  Status ReadKey(const std::string& name, const Json& value) {
    const Key* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                  [&](const Key& known) { return known.name == name; });
    if (key == std::end(kKeys)) {
      return WithHint(
          Complain("{}: the trainer has nothing for it", name),
          "take it out of the file; docs/zero_trainer.md lists DeepSpeed's keys that are understood");
    }
    if (value == "auto") return {};
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    switch (key->meaning) {
      case Meaning::kValue:
        Add(name, key->option, {text});
        return {};
      case Meaning::kFlag:
        if (!value.is_boolean()) return Complain("{}: {} is neither true nor false", name, value.dump());
        Add(name, value.get<bool>() ? key->option : "--no-" + std::string(key->option + 2), {});
        return {};
      case Meaning::kIs:
        if (value == Json::parse(key->option)) return {};
        return Complain("{}: {}: the trainer has {} only", name, value.dump(), key->option);
      case Meaning::kNoMatter:
        file_.notes.push_back(fmt::format("{}: {}: makes no difference here", source_, name));
        return {};
      case Meaning::kTogether:
        return {};
    }
    return {};
  }

  Status ReadPrecision() {
    const bool fp16 = Get("fp16.enabled", false), bf16 = Get("bf16.enabled", false);
    if (fp16 && bf16) return Complain("fp16 and bf16 are both enabled");
    const std::string type = fp16 ? "fp16" : bf16 ? "bf16" : "fp32";
    Add("fp16, bf16", "--dtype", {type});
    ReadLossScale(fp16);
    DYNAMICCL_CHECK_OK(ReadType("communication_data_type", "--reduce-type", type));
    DYNAMICCL_CHECK_OK(ReadType("data_types.grad_accum_dtype", "--accumulation-type", type));
    const std::vector<double> betas = Get("optimizer.params.betas", std::vector<double>{});
    if (betas.empty()) return {};
    if (betas.size() != 2) return Complain("optimizer.params.betas: two numbers");
    Add("optimizer.params.betas", "--beta1", {fmt::format("{}", betas[0])});
    Add("optimizer.params.betas", "--beta2", {fmt::format("{}", betas[1])});
    return {};
  }

  // Adds a note for a key of the file that has no effect.
  void NoteVoid(const char* key, const char* reason) {
    if (Find(key) != nullptr)
      file_.notes.push_back(fmt::format("{}: {}: makes no difference: {}", source_, key, reason));
  }

  // Translates the keys of the loss scale. The keys of a dynamic scale are translated even if the file sets a
  // fixed scale, because the command line may choose a dynamic one. ineffective_options.h finds the options
  // that have no effect in the end.
  void ReadLossScale(bool fp16) {
    constexpr std::pair<const char*, const char*> kOptions[] = {
        {"fp16.loss_scale_window", "--loss-scale-growth"},
        {"fp16.hysteresis", "--loss-scale-hysteresis"},
        {"fp16.min_loss_scale", "--least-loss-scale"}};
    if (!fp16) {
      for (const char* key : {"fp16.loss_scale", "fp16.initial_scale_power"}) NoteVoid(key, kNoFp16);
      for (const auto& [key, option] : kOptions) NoteVoid(key, kNoFp16);
      return;
    }
    const double scale = Get("fp16.loss_scale", 0.0);
    Add("fp16.loss_scale", "--loss-scale", {scale == 0.0 ? "dynamic" : fmt::format("{}", scale)});
    for (const auto& [key, option] : kOptions)
      if (Find(key) != nullptr) Add(key, option, {Find(key)->dump()});
    if (Find("fp16.initial_scale_power") != nullptr)
      Add("fp16.initial_scale_power", "--first-loss-scale",
          {fmt::format("{}", std::exp2(Get("fp16.initial_scale_power", 16.0)))});
  }

  // Translates a data type, which must be the model's type or fp32.
  Status ReadType(const std::string& name, const std::string& option, const std::string& model) {
    const std::string type = Get(name, std::string());
    if (type.empty()) return {};
    if (type != model && type != "fp32")
      return Complain("{}: {}: the trainer has {} and fp32", name, type, model);
    Add(name, option, {type == model ? "model" : "fp32"});
    return {};
  }

  // Translates the batch sizes. In DeepSpeed the batch of a step = micro-batch of a GPU * accumulation steps
  // * GPUs, so two of these numbers give the third. The GPUs of a tensor group count as one.
  Status ReadBatch() {
    const int64_t tensor_ranks = std::max<int64_t>(1, Get<int64_t>("tensor_parallel.autotp_size", 1));
    const int64_t ranks = std::max<int64_t>(1, world_ / tensor_ranks);
    const int64_t whole = Get<int64_t>("train_batch_size", 0);
    int64_t micro = Get<int64_t>("train_micro_batch_size_per_gpu", 0);
    int64_t steps = Get<int64_t>("gradient_accumulation_steps", 0);
    if (whole == 0 && micro == 0)
      return steps == 0
                 ? Status{}
                 : (Add("gradient_accumulation_steps", "--micro-steps", {std::to_string(steps)}), Status{});
    if (steps == 0) steps = whole == 0 || micro == 0 ? 1 : whole / (micro * ranks);
    if (micro == 0 && steps > 0) micro = whole / (steps * ranks);
    if (steps < 1 || micro < 1 || (whole != 0 && whole != micro * steps * ranks)) {
      return Complain(
          "train_batch_size {} is not train_micro_batch_size_per_gpu {} x gradient_accumulation_steps {} x "
          "{} "
          "ranks",
          whole, micro, steps, ranks);
    }
    Add("gradient_accumulation_steps", "--micro-steps", {std::to_string(steps)});
    Add("train_micro_batch_size_per_gpu", "--batch", {std::to_string(micro * ranks)});
    return {};
  }

  Status ReadOffload() {
    const std::string device = Get("zero_optimization.offload_optimizer.device", std::string("none"));
    const std::string path = Get("zero_optimization.offload_optimizer.nvme_path", std::string());
    if (device != "nvme") NoteVoid("zero_optimization.offload_optimizer.nvme_path", "the device is not nvme");
    if (device == "none") return {};
    if (device == "nvme" && path.empty())
      return Complain("zero_optimization.offload_optimizer.nvme_path is missing");
    if (device != "nvme" && device != "cpu")
      return Complain("zero_optimization.offload_optimizer.device: {}", device);
    Add("zero_optimization.offload_optimizer", "--offload-optimizer",
        {device == "cpu" ? device : "nvme:" + path});
    return {};
  }

  Status ReadGroup(const std::string& name, const std::string& option, int64_t none) {
    const Json* const size = Find(name);
    if (size == nullptr || *size == none) return {};
    if (!size->is_number_integer() || *size < 1)
      return Complain("{}: {}: a number of ranks, at least 1", name, size->dump());
    Add(name, option, {size->dump()});
    return {};
  }

  // DeepSpeed gives the bucket size in elements (5e8 by default). It is converted to the bytes of
  // --bucket-bytes.
  void ReadBucket() {
    const Json* const elements = Find("zero_optimization.reduce_bucket_size");
    if (elements == nullptr) return;
    const bool half = Get("fp16.enabled", false) || Get("bf16.enabled", false);
    const bool wide = !half || Get("communication_data_type", std::string()) == "fp32";
    Add("zero_optimization.reduce_bucket_size", "--bucket-bytes",
        {std::to_string(static_cast<int64_t>(elements->get<double>()) * (wide ? 4 : 2))});
  }

  void ReadExchange() {
    const std::string key = "zero_optimization.reduce_scatter";
    if (!Get(key, true)) Add(key, "--exchange", {"all_reduce"});
  }

  void ReadActivations() {
    const bool partitioned = Get("activation_checkpointing.partition_activations", false);
    const bool cpu = Get("activation_checkpointing.cpu_checkpointing", false);
    if (!partitioned && !cpu) return;
    Add("activation_checkpointing", "--activation-checkpoints", {cpu ? "partitioned_cpu" : "partitioned"});
  }

  // A key, and how the trainer's default differs from DeepSpeed's.
  struct OtherDefault {
    const char* name;
    const char* text;
  };

  void NoteAbsent(std::span<const OtherDefault> defaults) {
    for (const auto& [name, text] : defaults) {
      if (Find(name) != nullptr) continue;
      file_.notes.push_back(
          fmt::format("{}: {} is not there: the trainer's default is {}", source_, name, text));
    }
  }

  // Adds a note for each default in effect that differs from DeepSpeed's.
  void NoteDefaults() {
    constexpr OtherDefault kOther[] = {
        {"optimizer.params.betas", "0.9 and 0.95, where DeepSpeed has 0.9 and 0.999"},
        {"optimizer.params.weight_decay", "0.1, where DeepSpeed has 0"},
        {"scheduler.type", "half a cosine down to a tenth, where DeepSpeed keeps the rate"},
        {"gradient_clipping", "a norm of 1, where DeepSpeed does not clip"},
    };
    // The defaults of DeepSpeed's WarmupCosineLR (deepspeed/runtime/lr_schedules.py).
    constexpr OtherDefault kOfScheduler[] = {
        {"scheduler.params.warmup_num_steps", "0 steps, where DeepSpeed has 1000"},
        {"scheduler.params.warmup_type", "linear, where DeepSpeed has log"},
        {"scheduler.params.cos_min_ratio", "0.1, where DeepSpeed has 0.0001"},
    };
    NoteAbsent(kOther);
    if (Find("scheduler.type") != nullptr) NoteAbsent(kOfScheduler);
  }

  std::string source_;
  int world_;
  // The document's values by their dotted names.
  std::map<std::string, Json> leaves_;
  FileOptions file_;
};

}  // namespace

Result<FileOptions> ReadDeepSpeedSettings(const std::filesystem::path& path, int world) {
  const std::string source = path.string();
  std::ifstream stream(path);
  if (!stream) return MakeError(ErrorKind::kNotFound, "--deepspeed-config {}: {}", source, ErrnoText(errno));
  try {
    Result<FileOptions> options = DeepSpeedReader(source, world).Read(Json::parse(stream));
    if (options) options->translated = true;
    return options;
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kInvalidArgument, "{}: {}", source, error.what());
  }
}

}  // namespace dynamiccl::zero
