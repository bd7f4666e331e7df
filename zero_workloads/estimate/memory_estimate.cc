// SPDX-License-Identifier: Apache-2.0
// Combines the formulas of model_states.h and residual_memory.h for the four stages.
#include "zero_workloads/estimate/memory_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "zero_workloads/estimate/training_time.h"

namespace dynamiccl::zero {
namespace {

// Names in the order of the enumerators.
constexpr std::string_view kCheckpointNames[] = {"none", "full", "partitioned", "partitioned_cpu"};

// Bytes of one fp32 number.
constexpr double kFp32Bytes = 4;

double ModelTypeBytes(const EstimateSettings& settings) {
  return settings.dtype == "fp32" ? kFp32Bytes : kFp32Bytes / 2;
}

// Bytes of one number whose type is "model" or "fp32".
double BytesOfType(const EstimateSettings& settings, std::string_view type) {
  return type == "fp32" ? kFp32Bytes : ModelTypeBytes(settings);
}

double BuffersOf(const EstimateSettings& settings, double parameters) {
  if (settings.bucket_bytes <= 0) return FusedBuffer(parameters);
  return 2 * std::min(settings.bucket_bytes, parameters * BytesOfType(settings, settings.gradient_type));
}

// Bytes that a rank sends in a step, for one parameter and many ranks. Stage 0 reduces and gathers gradients;
// the other stages reduce gradients and gather parameters, stage 3 twice.
double SentBytesOfParameter(const EstimateSettings& settings, int stage) {
  const double gradient = BytesOfType(settings, settings.gradient_type);
  const double gathered = stage == 0 ? gradient : ModelTypeBytes(settings);
  return gradient + (CommunicationVolume(stage) - 1) * gathered;
}

// Bytes of the units that stage 3 holds at once: the root (embeddings, last norm, head), the unit that
// computes and those that are gathered ahead.
double GatheredOf(const EstimateSettings& settings) {
  if (!settings.shape) return 0;
  TransformerShape root = *settings.shape;
  const int64_t layers = std::exchange(root.layers, 0);
  const double root_parameters = ParametersOf(root);
  const double block = (ParametersOf(*settings.shape) - root_parameters) / static_cast<double>(layers);
  const double blocks = settings.blocks_in_unit * (1 + static_cast<double>(settings.units_ahead));
  const double at_once = root_parameters + block * std::min(static_cast<double>(layers), blocks);
  return at_once * BytesOf(settings).parameter / static_cast<double>(settings.tensor_parallel);
}

Status Reject(std::string message, std::string hint) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}", message), std::move(hint));
}

Status ValidateStates(const EstimateSettings& settings) {
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (settings.optimizer_bytes && *settings.optimizer_bytes != 0 && !positive(*settings.optimizer_bytes))
    return Reject(fmt::format("--optimizer-bytes {} is no number of bytes", *settings.optimizer_bytes),
                  "12 for Adam with fp32 master weights, 8 with momentum alone");
  if (settings.alpha && !positive(*settings.alpha))
    return Reject(fmt::format("--alpha {} must be positive", *settings.alpha),
                  "1 for gradients in fp32, 0.5 for 16 bits");
  if (settings.gradient_type != "model" && settings.gradient_type != "fp32")
    return Reject(fmt::format("--gradient-type {} is none", settings.gradient_type), "model or fp32");
  const std::string& accumulation = settings.accumulation_type;
  if (accumulation != "none" && accumulation != "model" && accumulation != "fp32")
    return Reject(fmt::format("--accumulation-type {} is none", accumulation), "none, model or fp32");
  const std::string& place = settings.accumulation;
  if (place != "in_place" && place != "local" && place != "sharded")
    return Reject(fmt::format("--accumulation {} is none", place), "in_place, local or sharded");
  if (place != "in_place" && accumulation == "none")
    return Reject(fmt::format("--accumulation {} without sums over micro-steps", place),
                  "add --accumulation-type fp32 or model");
  return {};
}

Status ValidateTime(const EstimateSettings& settings) {
  if (settings.operations_a_second < 0 || !std::isfinite(settings.operations_a_second))
    return Reject("--tflops must be positive", "for example --tflops 140");
  if ((settings.tokens > 0) != (settings.operations_a_second > 0))
    return Reject("the time to train needs --tokens and --tflops", "for example --tokens 300B --tflops 140");
  return {};
}

}  // namespace

Status Validate(const EstimateSettings& settings) {
  if (settings.parameters <= 0 && !settings.shape)
    return Reject("nothing says how large the model is",
                  "--parameters 7.5B, --layers and --hidden, or --preset");
  if (settings.shape && (settings.shape->layers < 1 || settings.shape->hidden < 1 ||
                         settings.shape->sequence < 1 || settings.shape->vocabulary < 1))
    return Reject("--layers, --hidden, --sequence and --vocabulary must be positive",
                  "for example --layers 48 --hidden 1600");
  if (settings.dtype != "fp32" && settings.dtype != "bf16" && settings.dtype != "fp16")
    return Reject(fmt::format("--dtype {} is none", settings.dtype), "fp32, bf16 or fp16");
  if (settings.ranks < 1 || settings.tensor_parallel < 1 || settings.batch < 1)
    return Reject("--ranks, --tensor-parallel and --batch must be at least 1", "for example --ranks 64");
  if (!(settings.blocks_in_unit > 0))
    return Reject(fmt::format("--unit-blocks {} must be positive", settings.blocks_in_unit),
                  "0.5 for halves of blocks");
  if (settings.units_ahead < 0)
    return Reject(fmt::format("--prefetch-units {} is out of range: at least 0", settings.units_ahead),
                  "0 gathers each unit when it is needed");
  DYNAMICCL_CHECK_OK(ValidateStates(settings));
  return ValidateTime(settings);
}

StateBytes BytesOf(const EstimateSettings& settings) {
  StateBytes bytes = settings.dtype == "fp32" ? kFp32Adam : kMixedPrecisionAdam;
  if (settings.optimizer_bytes) bytes.optimizer = *settings.optimizer_bytes;
  const bool sums = settings.accumulation == "in_place" && settings.accumulation_type != "none";
  bytes.gradient = BytesOfType(settings, sums ? settings.accumulation_type : settings.gradient_type);
  if (settings.alpha) bytes.gradient = kFp32Bytes * *settings.alpha;
  return bytes;
}

// Returns the model states of one rank for a model with this number of parameters. In stage 1, the gradients
// that a step has added up locally take the place of the whole set of gradients. In the other stages they
// need memory in addition to the gradients.
ModelStates StatesOfRank(const EstimateSettings& settings, double parameters, int stage) {
  ModelStates states = StatesOf(parameters, BytesOf(settings), stage, settings.ranks);
  if (settings.accumulation == "in_place") return states;
  if (settings.accumulation == "sharded" && stage >= 2) {
    states.gradients += parameters * kFp32Bytes / static_cast<double>(settings.ranks);
    return states;
  }
  const double local = parameters * BytesOfType(settings, settings.accumulation_type);
  states.gradients = stage == 1 ? std::max(states.gradients, local) : states.gradients + local;
  return states;
}

double TrainingSecondsOf(const EstimateSettings& settings) {
  return TrainingSeconds({.parameters = ParametersOf(settings),
                          .tokens = settings.tokens,
                          .recomputes = settings.checkpoints != Checkpoints::kNone,
                          .devices = static_cast<double>(settings.ranks * settings.tensor_parallel),
                          .operations_a_second = settings.operations_a_second});
}

double ParametersOf(const EstimateSettings& settings) {
  return settings.parameters > 0 ? settings.parameters : ParametersOf(*settings.shape);
}

std::array<StageEstimate, 4> EstimateOf(const EstimateSettings& settings) {
  const double parameters = ParametersOf(settings) / static_cast<double>(settings.tensor_parallel);
  ActivationMemory activations;
  if (settings.shape) {
    activations =
        ActivationsOf(*settings.shape, settings.batch, settings.tensor_parallel, BytesOf(settings).parameter,
                      settings.checkpoints, settings.activations_of_block);
  }
  std::array<StageEstimate, 4> estimates;
  for (int stage = 0; stage < 4; ++stage) {
    estimates[static_cast<size_t>(stage)] = {.states = StatesOfRank(settings, parameters, stage),
                                             .buffers = BuffersOf(settings, parameters),
                                             .gathered = stage == 3 ? GatheredOf(settings) : 0,
                                             .activations = activations.total(),
                                             .on_host = activations.on_host,
                                             .sent = SentBytesOfParameter(settings, stage) * parameters *
                                                     static_cast<double>(settings.ranks - 1) /
                                                     static_cast<double>(settings.ranks)};
  }
  return estimates;
}

Result<double> ParseParameters(const std::string& text, std::string_view what) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  // Suffixes of a number of parameters, such as the B of "7.5B", and their factors.
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
  for (const auto& [name, worth] : kUnits) {
    if (end != text.c_str() && unit == name && number > 0 && std::isfinite(number)) return number * worth;
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is no number of {}", text, what),
                  "for example 7.5B, 350M or 1T");
}

std::optional<Checkpoints> ParseCheckpoints(std::string_view name) {
  const auto* const found = std::find(std::begin(kCheckpointNames), std::end(kCheckpointNames), name);
  if (found == std::end(kCheckpointNames)) return std::nullopt;
  return static_cast<Checkpoints>(found - std::begin(kCheckpointNames));
}

std::string_view Name(Checkpoints checkpoints) {
  return kCheckpointNames[static_cast<size_t>(checkpoints)];
}

}  // namespace dynamiccl::zero
