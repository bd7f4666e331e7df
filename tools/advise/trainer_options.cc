// SPDX-License-Identifier: Apache-2.0
// Knows the trainer's options, their defaults and their alternative spellings.
#include "tools/advise/trainer_options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <set>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// Bytes that stand for the trainer's option `--bucket-bytes all`. They are more than any model has, and the
// largest value that the generator of traces accepts for a bucket.
constexpr int64_t kLargestBucket = int64_t{1} << 44;

// The trainer's options that have an effect on collectives, with the trainer's defaults.
struct Options {
  int64_t layers = 4, hidden = 128, sequence = 128;
  std::string dtype = "fp32", reduce_type = "model", bucket_bytes = "4M", batch = "8";
  std::string stage = "0", unit = "block", exchange = "collective", accumulation = "default";
  int64_t micro_steps = 1;
  int tensor_parallel = 1, shard_group = 0, secondary_group = 0;
  bool overlap = true, prefetch = true;
  int64_t prefetch_units = 1, unit_blocks = 1;
  std::string config;
};

void Register(CLI::App& app, Options& options) {
  app.allow_extras();
  app.add_option("--layers", options.layers);
  app.add_option("--hidden", options.hidden);
  app.add_option("--sequence", options.sequence);
  app.add_option("--dtype", options.dtype);
  app.add_option("--reduce-type", options.reduce_type);
  app.add_option("--bucket-bytes", options.bucket_bytes);
  app.add_option("--batch", options.batch);
  app.add_option("--stage,--zero-stage", options.stage);
  app.add_option("--unit", options.unit);
  app.add_option("--unit-blocks", options.unit_blocks);
  app.add_option("--exchange", options.exchange);
  app.add_option("--accumulation", options.accumulation);
  app.add_option("--micro-steps,--gradient-accumulation-steps", options.micro_steps);
  app.add_option("--tensor-parallel", options.tensor_parallel);
  app.add_option("--shard-group", options.shard_group);
  app.add_option("--secondary-group", options.secondary_group);
  app.add_flag("--overlap,--overlap-comm,!--no-overlap,!--no-overlap-comm", options.overlap);
  app.add_flag("--prefetch,!--no-prefetch", options.prefetch);
  app.add_option("--prefetch-units", options.prefetch_units);
  app.add_option("--config,--deepspeed-config,--deepspeed_config,--preset", options.config);
}

// Returns an error if an option has an effect on collectives that the simulator does not model.
Status CheckAdvisable(const Options& options) {
  const auto refuse = [](const char* what) {
    return WithHint(MakeError(ErrorKind::kUnsupported, "no advice is given for {}", what),
                    "leave it out of the trainer's options, or give the trace alone");
  };
  if (options.tensor_parallel > 1) return refuse("--tensor-parallel");
  if (options.batch == "auto") return refuse("--batch auto");
  if (!options.config.empty()) return refuse("options from files and presets");
  return {};
}

// Translates the trainer's name of a number type into the name that the generator of traces uses.
std::string TypeName(const std::string& name) {
  if (name == "fp32") return "float32";
  if (name == "bf16") return "bfloat16";
  return name == "fp16" ? "float16" : name;
}

// The value of the trainer's option --reduce-type: "model" if gradients are reduced in the model's type.
std::string ReduceTypeOption(const AdvisedJob& job) {
  const std::string type = SettingOf(job, "reduce_type");
  return type.empty() || type == SettingOf(job, "dtype") ? "model" : "fp32";
}

// Returns the same name for all spellings of an option, including its negation ("--no-prefetch"), and for
// options that contradict each other.
std::string NameOf(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (name.starts_with("--no-")) name.erase(2, 3);
  if (name == "--zero-stage") return "--stage";
  if (name == "--prefetch-units") return "--prefetch";
  if (name == "--unit-blocks") return "--unit";
  return name == "--overlap-comm" ? "--overlap" : name;
}

// Bytes of a bucket as the option gives them; 0 if the option's text is not a size.
int64_t BucketBytes(const Options& options) {
  if (options.bucket_bytes == "all") return kLargestBucket;
  const auto bytes = ParseBytes(options.bucket_bytes);
  return bytes ? static_cast<int64_t>(*bytes) : 0;
}

// The bucket size as the shortest text that the trainer reads back as the same number of bytes.
std::string BucketOption(const AdvisedJob& job) {
  const std::string bytes = SettingOf(job, "bucket_bytes");
  if (std::stoll(bytes) >= kLargestBucket) return "all";
  const std::string text = FormatBytes(std::stoull(bytes));
  const auto back = ParseBytes(text);
  return back && *back == std::stoull(bytes) ? text : bytes;
}

}  // namespace

Result<AdvisedJob> TrainerJobOf(const std::vector<std::string>& given, int ranks) {
  Options options;
  CLI::App app;
  Register(app, options);
  try {
    app.parse(std::vector<std::string>(given.rbegin(), given.rend()));
  } catch (const CLI::ParseError& error) {
    return MakeError(ErrorKind::kInvalidArgument, "the trainer's options: {}", error.what());
  }
  DYNAMICCL_CHECK_OK(CheckAdvisable(options));
  AdvisedJob job{.framework = std::string(kTrainer)};
  DYNAMICCL_TRY(job.model,
                ParseModel(fmt::format("gpt:layers={},hidden={},sequence={},vocabulary=256,head_bias=true",
                                       options.layers, options.hidden, options.sequence)));
  const bool hpz = options.secondary_group > 0;
  job.world = {ranks, 1, hpz ? options.secondary_group : options.shard_group};
  job.settings = {{"stage", options.stage},
                  {"dtype", TypeName(options.dtype)},
                  {"reduce_type", options.reduce_type == "fp32" ? "float32" : TypeName(options.dtype)},
                  {"bucket_bytes", std::to_string(BucketBytes(options))},
                  {"unit", options.unit},
                  {"unit_blocks", std::to_string(options.unit_blocks)},
                  {"exchange", options.exchange},
                  {"accumulation", options.accumulation},
                  {"micro_steps", std::to_string(options.micro_steps)},
                  {"overlap", options.overlap ? "true" : "false"},
                  {"prefetch", options.prefetch ? "true" : "false"},
                  {"prefetch_units", std::to_string(options.prefetch_units)},
                  {"hybrid", hpz ? "hpz" : "shard"}};
  DYNAMICCL_TRY(const auto operations, OperationsOf(job));
  return job;
}

std::vector<std::string> OptionsFor(const AdvisedJob& base, const AdvisedJob& changed) {
  std::vector<std::string> options;
  const auto differs = [&](const char* name) { return SettingOf(base, name) != SettingOf(changed, name); };
  const auto add = [&](const char* name, const char* option) {
    if (differs(name)) options.insert(options.end(), {option, SettingOf(changed, name)});
  };
  add("stage", "--stage");
  if (differs("bucket_bytes")) options.insert(options.end(), {"--bucket-bytes", BucketOption(changed)});
  add("unit", "--unit");
  add("unit_blocks", "--unit-blocks");
  add("exchange", "--exchange");
  add("accumulation", "--accumulation");
  if (differs("reduce_type") || differs("dtype"))
    options.insert(options.end(), {"--reduce-type", ReduceTypeOption(changed)});
  for (const char* name : {"overlap", "prefetch"})
    if (differs(name))
      options.push_back(fmt::format("--{}{}", SettingOf(changed, name) == "true" ? "" : "no-", name));
  add("prefetch_units", "--prefetch-units");
  if (base.world.shard == changed.world.shard && !differs("hybrid")) return options;
  const bool hpz = SettingOf(changed, "hybrid") == "hpz";
  const int group = changed.world.IsHybrid() ? changed.world.shard : 0;
  options.insert(options.end(), {"--shard-group", std::to_string(hpz ? 0 : group), "--secondary-group",
                                 std::to_string(hpz ? group : 0)});
  return options;
}

std::vector<std::string> Replaced(const std::vector<std::string>& options,
                                  const std::vector<std::string>& changes) {
  std::set<std::string> names;
  for (const std::string& word : changes)
    if (word.starts_with("--")) names.insert(NameOf(word));
  std::vector<std::string> result;
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    if (!word.starts_with("--") || !names.contains(NameOf(word))) {
      result.push_back(word);
      continue;
    }
    const bool has_value =
        word.find('=') == std::string::npos && i + 1 < options.size() && !options[i + 1].starts_with("--");
    if (has_value) ++i;
  }
  result.insert(result.end(), changes.begin(), changes.end());
  return result;
}

}  // namespace dynamiccl
