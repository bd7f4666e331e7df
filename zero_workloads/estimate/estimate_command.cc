// SPDX-License-Identifier: Apache-2.0
// Declares the options and formats the two kinds of output (tables and JSON). The estimates come from
// memory_estimate.h, the ZeRO paper's figures from paper_figures.h. The fields of the JSON output are stable
// within a schema number.
#include "zero_workloads/estimate/estimate_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "zero_workloads/estimate/model_preset.h"
#include "zero_workloads/estimate/paper_figures.h"
#include "zero_workloads/estimate/training_time.h"

namespace dynamiccl::zero {
namespace {

using Json = nlohmann::ordered_json;

// Number of bytes that the ZeRO paper calls a GB.
constexpr double kGb = 1e9;
constexpr double kTera = 1e12;
constexpr double kSecondsOfDay = 86400;

std::string Gb(double bytes) {
  return fmt::format("{:.2f}", bytes / kGb);
}

std::string FiguresText() {
  std::string text = fmt::format("{:<13} {:<50} {:>10} {:>10}\n", "where", "what", "estimate", "printed");
  for (const PaperFigure& figure : PaperFigures()) {
    text += fmt::format("{:<13} {:<50} {:>10.5g} {:>10g} {}{}\n", figure.source, figure.what, figure.estimate,
                        figure.printed, figure.unit, figure.agrees() ? "" : "  differs: " + figure.remark);
  }
  return text;
}

Json FiguresJson() {
  Json figures = Json::array();
  for (const PaperFigure& figure : PaperFigures()) {
    figures.push_back({{"source", figure.source},
                       {"what", figure.what},
                       {"estimate", figure.estimate},
                       {"printed", figure.printed},
                       {"unit", figure.unit},
                       {"agrees", figure.agrees()},
                       {"remark", figure.remark}});
  }
  return {{"schema", 1}, {"figures", std::move(figures)}};
}

std::string Header(const EstimateSettings& settings) {
  std::string text =
      fmt::format("{:.4g} billion parameters, {}, {} data-parallel x {} tensor-parallel ranks",
                  ParametersOf(settings) / 1e9, settings.dtype, settings.ranks, settings.tensor_parallel);
  if (settings.shape) {
    text += fmt::format("; {} sequences of {} a rank, checkpoints: {}", settings.batch,
                        settings.shape->sequence, Name(settings.checkpoints));
  }
  const StateBytes bytes = BytesOf(settings);
  return text + fmt::format(
                    "\nfor one parameter: {:g} bytes of optimizer states (K), {:g} of gradients (alpha "
                    "{:g})\nGB (10^9 bytes) on each rank\n\n",
                    bytes.optimizer, bytes.gradient, bytes.gradient / 4);
}

double TrainingDays(const EstimateSettings& settings) {
  return TrainingSecondsOf(settings) / kSecondsOfDay;
}

std::string TimeText(const EstimateSettings& settings) {
  const bool recomputes = settings.checkpoints != Checkpoints::kNone;
  return fmt::format(
      "{:.4g} days to train on {:.4g} billion tokens: {} operations for each parameter and token{}, {} ranks "
      "at {:g} TFLOPS\n",
      TrainingDays(settings), settings.tokens / 1e9, OperationsOfParameter(recomputes),
      recomputes ? " (2 of them recompute)" : "", settings.ranks * settings.tensor_parallel,
      settings.operations_a_second / kTera);
}

std::string EstimateText(const EstimateSettings& settings) {
  std::string text = Header(settings);
  text += fmt::format("{:<6} {:>11} {:>10} {:>10} {:>8} {:>9} {:>12} {:>10} {:>12}\n", "stage", "parameters",
                      "gradients", "optimizer", "buffers", "gathered", "activations", "total", "sent a step");
  const auto estimates = EstimateOf(settings);
  for (size_t stage = 0; stage < estimates.size(); ++stage) {
    const StageEstimate& one = estimates[stage];
    text += fmt::format("{:<6} {:>11} {:>10} {:>10} {:>8} {:>9} {:>12} {:>10} {:>12}", stage,
                        Gb(one.states.parameters), Gb(one.states.gradients), Gb(one.states.optimizer),
                        Gb(one.buffers), Gb(one.gathered), settings.shape ? Gb(one.activations) : "?",
                        Gb(one.total()), Gb(one.sent));
    if (settings.device_bytes > 0) text += one.total() <= settings.device_bytes ? "  fits" : "  does not fit";
    text += '\n';
  }
  if (estimates[0].on_host > 0)
    text += fmt::format("{} GB of checkpoints in host memory\n", Gb(estimates[0].on_host));
  if (settings.tokens > 0) text += TimeText(settings);
  if (!settings.shape) text += "Activations are not known without --layers and --hidden.\n";
  return text;
}

Json EstimateJson(const EstimateSettings& settings) {
  Json json = {{"schema", 1},
               {"parameters", ParametersOf(settings)},
               {"dtype", settings.dtype},
               {"ranks", settings.ranks},
               {"tensor_parallel", settings.tensor_parallel},
               {"optimizer_bytes_of_parameter", BytesOf(settings).optimizer},
               {"gradient_bytes_of_parameter", BytesOf(settings).gradient}};
  if (settings.tokens > 0) json["training_days"] = TrainingDays(settings);
  const auto estimates = EstimateOf(settings);
  for (size_t stage = 0; stage < estimates.size(); ++stage) {
    const StageEstimate& one = estimates[stage];
    Json row = {{"stage", stage},
                {"parameters", one.states.parameters},
                {"gradients", one.states.gradients},
                {"optimizer", one.states.optimizer},
                {"buffers", one.buffers},
                {"gathered", one.gathered},
                {"activations", settings.shape ? Json(one.activations) : Json(nullptr)},
                {"on_host", one.on_host},
                {"sent_a_step", one.sent},
                {"total", one.total()}};
    if (settings.device_bytes > 0) row["fits"] = one.total() <= settings.device_bytes;
    json["bytes_by_stage"].push_back(std::move(row));
  }
  return json;
}

}  // namespace

void EstimateCommand::Register(CLI::App& app) {
  app_ = &app;
  app.add_option("--parameters", parameters_, "How many: 7.5B, 350M, 1T.");
  app.add_option("--layers", shape_.layers, "Transformer blocks.");
  app.add_option("--hidden", shape_.hidden, "Width of the residual stream.");
  app.add_option("--sequence", shape_.sequence, "Tokens of a sequence.")->capture_default_str();
  app.add_option("--vocabulary", shape_.vocabulary, "Rows of the token embedding.")->capture_default_str();
  app.add_option(
      "--preset", preset_,
      "A model of the ZeRO paper, with its ranks and batch, or of GPT-2: " + ModelPresetNames() + ".");
  app.add_option("--config", config_, "The paper's C1 to C5: sets --checkpoints and says the stage.");
  app.add_option("--dtype", settings_.dtype, "fp32, or bf16 or fp16 with fp32 master weights.")
      ->capture_default_str();
  app.add_option("--ranks", settings_.ranks, "Data-parallel ranks.")->capture_default_str();
  app.add_option("--tensor-parallel", settings_.tensor_parallel, "Ranks that share each layer.")
      ->capture_default_str();
  app.add_option("--batch", settings_.batch, "Sequences of a rank.")->capture_default_str();
  app.add_option("--checkpoints", checkpoints_,
                 "Of activations: none, full, partitioned (P_a), partitioned_cpu (P_a+cpu).")
      ->capture_default_str();
  app.add_option("--bucket-bytes", settings_.bucket_bytes,
                 "Size of a gradient bucket; 0: one fused buffer in fp32.")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("4M");
  app.add_option("--unit-blocks", settings_.blocks_in_unit,
                 "Blocks that stage 3 gathers at once; 0.5: halves of blocks.")
      ->capture_default_str();
  app.add_option("--prefetch-units", settings_.units_ahead,
                 "Units that stage 3 gathers before their use; 0: none.")
      ->capture_default_str();
  app.add_option("--device-memory", settings_.device_bytes, "Of a rank, 32GB for example: which stages fit.")
      ->transform(CLI::AsSizeValue(true));
  RegisterStates(app);
  RegisterTime(app);
  app.add_flag("--untied-head", untied_head_,
               "The head has weights of its own; GPT-2's are the token embedding.");
  app.add_flag("--paper", paper_, "The paper's own figures beside what the formulas give.");
  CLI::Option* const paper = app.get_option("--paper");
  for (CLI::Option* option : app.get_options()) {
    if (option != paper && option != app.get_help_ptr()) paper->excludes(option);
  }
  app.add_flag("--json", json_, "Print JSON.");
}

void EstimateCommand::RegisterStates(CLI::App& app) {
  app.add_option("--optimizer-bytes", settings_.optimizer_bytes,
                 "Of optimizer states for a parameter, master weights included (the paper's K); default: "
                 "Adam's 12, or 8 with --dtype fp32. Momentum alone: 8; 8-bit Adam: 6.");
  app.add_option("--gradient-type", settings_.gradient_type,
                 "Type in which gradients are kept and summed over ranks: model (as --dtype) or fp32.")
      ->capture_default_str();
  app.add_option("--accumulation-type", settings_.accumulation_type,
                 "Type of the sums of gradients over micro-steps: model, fp32, or none for one micro-step.")
      ->capture_default_str();
  app.add_option(
         "--accumulation", settings_.accumulation,
         "Where these sums are: in_place (in the gradients' place), or beside the gradients as `train` "
         "has them: local, or sharded (stages 2 and 3: a rank's shard in fp32).")
      ->capture_default_str();
  CLI::Option* const alpha =
      app.add_option("--alpha", settings_.alpha,
                     "Bytes of gradients for a parameter, divided by 4: 0.5 in 16 bits, 1 in fp32, 1.5 for "
                     "16-bit gradients and fp32 sums at the same time.");
  alpha->excludes(app.get_option("--accumulation-type"));
}

void EstimateCommand::RegisterTime(CLI::App& app) {
  app.add_option("--tokens", tokens_, "Tokens to train on, 300B for example: prints how long that takes.");
  app.add_option("--tflops", tflops_,
                 "Of each rank while it trains, 140 for example: 10^12 operations in a second.");
}

Status EstimateCommand::TakeTime() {
  settings_.operations_a_second = tflops_ * kTera;
  if (Given("--tflops") && tflops_ <= 0)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--tflops {} must be positive", tflops_),
                    "for example --tflops 140");
  if (tokens_.empty()) return {};
  DYNAMICCL_TRY(settings_.tokens, ParseParameters(tokens_, "tokens"));
  return {};
}

Status EstimateCommand::CheckWhatGoesTogether() const {
  const auto reject = [](std::string message, std::string hint) -> Status {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}", message), std::move(hint));
  };
  if (Given("--config") && Given("--checkpoints"))
    return reject("--config says what --checkpoints says", "give one of them");
  const bool shaped = Given("--layers") || Given("--hidden") || Given("--preset");
  for (const char* option :
       {"--batch", "--sequence", "--vocabulary", "--untied-head", "--checkpoints", "--config"}) {
    if (Given(option) && !shaped)
      return reject(fmt::format("{} needs the model's shape", option),
                    "add --layers and --hidden, or --preset");
  }
  return {};
}

Status EstimateCommand::TakePreset() {
  if (preset_.empty()) return {};
  DYNAMICCL_TRY(const ModelPreset preset, FindModelPreset(preset_));
  const auto not_given = [this](const char* option) { return app_->count(option) == 0; };
  if (not_given("--layers")) shape_.layers = preset.layers;
  if (not_given("--hidden")) shape_.hidden = preset.hidden;
  if (not_given("--tensor-parallel")) settings_.tensor_parallel = preset.tensor_parallel;
  if (not_given("--ranks") && preset.ranks > 0) settings_.ranks = preset.ranks;
  if (not_given("--batch")) settings_.batch = preset.batch;
  return {};
}

Status EstimateCommand::TakeShape() {
  const bool some = shape_.layers != 0 || shape_.hidden != 0;
  shape_.tied_head = !untied_head_;
  if (some) settings_.shape = shape_;
  if (parameters_.empty()) return {};
  DYNAMICCL_TRY(settings_.parameters, ParseParameters(parameters_));
  return {};
}

Status EstimateCommand::TakeConfig() {
  const auto checkpoints = ParseCheckpoints(checkpoints_);
  if (!checkpoints)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--checkpoints {} is none", checkpoints_),
                    "none, full, partitioned or partitioned_cpu");
  settings_.checkpoints = *checkpoints;
  if (config_.empty()) return {};
  for (const PaperConfig& config : PaperConfigs()) {
    if (config.name != config_) continue;
    settings_.checkpoints = config.checkpoints;
    return {};
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--config {} is none", config_),
                  "C1, C2, C3, C4 or C5");
}

Result<std::string> EstimateCommand::Run() {
  DYNAMICCL_CHECK_OK(CheckWhatGoesTogether());
  if (paper_) return json_ ? FiguresJson().dump(2) + "\n" : FiguresText();
  DYNAMICCL_CHECK_OK(TakePreset());
  DYNAMICCL_CHECK_OK(TakeShape());
  DYNAMICCL_CHECK_OK(TakeConfig());
  DYNAMICCL_CHECK_OK(TakeTime());
  DYNAMICCL_CHECK_OK(Validate(settings_));
  if (json_) return EstimateJson(settings_).dump(2) + "\n";
  std::string text = EstimateText(settings_);
  for (const PaperConfig& config : PaperConfigs()) {
    if (config.name == config_) text += fmt::format("{} is stage {} of these\n", config.name, config.stage);
  }
  return text;
}

}  // namespace dynamiccl::zero
