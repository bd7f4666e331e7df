// SPDX-License-Identifier: Apache-2.0
#include "agents/train_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "agents/config/boosted_trees.h"
#include "agents/config/fine_tuning.h"
#include "agents/integer_reference.h"
#include "agents/policy_export.h"
#include "agents/trigger/trigger_calibration.h"
#include "agents/trigger/trigger_training.h"
#include "src/base/clock.h"
#include "src/policy/boosted_trees.h"
#include "src/policy/policy_file.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::agents {
namespace {

constexpr char kProgram[] = "dynamiccl-agents train";
// Jobs that no training iteration sees, of each framework and model family: for the thresholds and for the
// comparison of integers with floats.
constexpr int kCheckJobs = 2;
constexpr int kCheckSteps = 6;
constexpr int kCheckCalls = 128;

// One line to the user and into the provenance.
void Note(Provenance& provenance, const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
  provenance.notes.push_back(text);
}

Result<std::vector<CallSequence>> ReadSequences(const std::vector<std::string>& paths,
                                                Provenance& provenance) {
  std::vector<CallSequence> sequences;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(const InputFile input, HashInput("trace", path));
    provenance.inputs.push_back(input);
    DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
    for (CallSequence& sequence : SequencesOf(trace, path)) sequences.push_back(std::move(sequence));
  }
  return sequences;
}

struct SplitKeys {
  std::vector<SweptKey> seen;
  std::vector<SweptKey> held_out;
};

Result<SplitKeys> TrainingKeys(const TrainSettings& settings, Provenance& provenance) {
  for (const std::string& path : settings.measurements) {
    DYNAMICCL_TRY(const InputFile input, HashInput("measurements", path));
    provenance.inputs.push_back(input);
  }
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  SplitKeys keys;
  for (SweptKey& key : KeysOf(files)) {
    const bool seen = SplitOf(key, settings.hold_out) == Split::kSeen;
    (seen ? keys.seen : keys.held_out).push_back(std::move(key));
  }
  if (!keys.seen.empty()) return keys;
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "nothing is left to train on: no measured config with two repeats "
                            "outside of what is held out"),
                  "give a larger sweep, or hold out less");
}

TriggerNetwork TrainTriggerAgent(const TrainSettings& settings, const std::vector<CallSequence>& recorded,
                                 Provenance& provenance) {
  TriggerTrainingSettings training;
  training.seed = settings.seed;
  training.iterations = settings.trigger_iterations;
  TriggerTrainingReport report;
  TriggerNetwork network = TrainTrigger(recorded, training, &report);
  Note(provenance,
       fmt::format("trigger: {} recorded and {} generated sequences, {} iterations, loss {:.3f}, {:.1f} s",
                   recorded.size(), report.generated, training.iterations, report.loss, report.seconds));
  return network;
}

ConfigNetworks TrainConfigAgent(const TrainSettings& settings, const std::vector<ConfigSample>& samples,
                                Provenance& provenance) {
  ConfigTrainingSettings training;
  training.seed = settings.seed;
  training.iterations = settings.config_iterations;
  ConfigTrainingReport report;
  ConfigNetworks networks = TrainConfig(samples, training, &report);
  Note(provenance, fmt::format("config: {} measured configs, {} iterations, error a factor of {:.3f} (cost "
                               "model {:.3f}), {:.1f} s",
                               samples.size(), training.iterations, std::exp2(report.error_octaves),
                               std::exp2(report.prior_octaves), report.seconds));
  return networks;
}

// A policy whose trees alone are filled.
Result<std::unique_ptr<Policy>> TrainTreesFor(const TrainSettings& settings,
                                              const std::vector<ConfigSample>& samples,
                                              Provenance& provenance) {
  auto policy = std::make_unique<Policy>();
  if (!CanTrainTrees()) {
    Note(provenance, "trees: none, this build has no XGBoost; the networks decide alone");
    return policy;
  }
  const int64_t start = MonotonicNanoseconds();
  TreeTrainingSettings training;
  training.seed = settings.seed;
  DYNAMICCL_CHECK_OK(TrainTrees(samples, training, policy->tensors));
  double error = 0;
  for (const ConfigSample& sample : samples)
    error += std::abs(PredictTreeResidual(policy->tensors, sample.inputs) / 65536.0 - sample.residual);
  Note(provenance, fmt::format("trees: {}, error a factor of {:.3f}, {:.1f} s", policy->tensors.trees.count,
                               std::exp2(error / static_cast<double>(samples.size())),
                               static_cast<double>(MonotonicNanoseconds() - start) * 1e-9));
  return policy;
}

// The box of the old training and the new one together.
void WidenDomain(const PolicyTensors& old, PolicyTensors& tensors) {
  for (size_t i = 0; i < kConfigInputs; ++i) {
    tensors.domain_min[i] = std::min(tensors.domain_min[i], old.domain_min[i]);
    tensors.domain_max[i] = std::max(tensors.domain_max[i], old.domain_max[i]);
  }
}

Result<Sha256Digest> FineTuneAndExport(const TrainSettings& settings) {
  if (!settings.traces.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--from keeps the policy's trigger agent"),
                    "give no traces, or train without --from");
  }
  Provenance provenance{kProgram, settings.seed, settings.hold_out, {}, {}};
  DYNAMICCL_TRY(const InputFile base_file, HashInput("policy", settings.from));
  provenance.inputs.push_back(base_file);
  DYNAMICCL_TRY(const auto base, ReadPolicyFile(settings.from));
  DYNAMICCL_TRY(const SplitKeys keys, TrainingKeys(settings, provenance));
  const std::vector<ConfigSample> samples = SamplesOf(keys.seen);
  if (samples.empty()) {
    return MakeError(ErrorKind::kUnsupported, "the cost model can price none of the measured configs");
  }
  ConfigNetworks networks = NetworksOf(base->tensors);
  ConfigTrainingReport report;
  ContinueTraining(networks, samples, FineTuningSettings(settings.seed), &report);
  auto policy = std::make_unique<Policy>();
  policy->tensors = base->tensors;
  DYNAMICCL_CHECK_OK(ExportConfig(networks, samples, policy->tensors));
  WidenDomain(base->tensors, policy->tensors);
  RefreshLeaves(samples, policy->tensors);
  FillGoldenFeatures(samples, policy->tensors);
  FillGoldenOutputs(policy->tensors);
  Note(provenance,
       fmt::format("config: {} measured configs on top of {}, error a factor of {:.3f} (cost model "
                   "{:.3f}), {:.1f} s",
                   samples.size(), settings.from, std::exp2(report.error_octaves),
                   std::exp2(report.prior_octaves), report.seconds));
  policy->provenance = FormatProvenance(provenance);
  policy->training_data_id = TrainingDataId(provenance);
  policy->min_nccl_version = base->min_nccl_version;
  policy->max_nccl_version = base->max_nccl_version;
  return ExportPolicy(settings.output, *policy);
}

Result<Sha256Digest> TrainAndExport(const TrainSettings& settings) {
  Provenance provenance{kProgram, settings.seed, settings.hold_out, {}, {}};
  DYNAMICCL_TRY(const std::vector<CallSequence> recorded, ReadSequences(settings.traces, provenance));
  DYNAMICCL_TRY(const SplitKeys keys, TrainingKeys(settings, provenance));
  const std::vector<ConfigSample> samples = SamplesOf(keys.seen);
  if (samples.empty()) {
    return MakeError(ErrorKind::kUnsupported, "the cost model can price none of the measured configs");
  }
  const TriggerNetwork trigger = TrainTriggerAgent(settings, recorded, provenance);
  const ConfigNetworks config = TrainConfigAgent(settings, samples, provenance);
  DYNAMICCL_TRY(const auto trees, TrainTreesFor(settings, samples, provenance));

  std::mt19937_64 random(settings.seed + 1);
  JobPlan plan = Completed({});
  plan.jobs = kCheckJobs;
  plan.steps = kCheckSteps;
  const std::vector<CallSequence> check = RandomJobs(plan, random);
  DYNAMICCL_TRY(const auto draft,
                MakePolicy({&trigger, &check, &config, &samples, &trees->tensors}, provenance));
  const CalibrationReport calibrated = CalibrateTrigger(check, {}, draft->tensors);
  Note(provenance, fmt::format("trigger: thresholds from {} sequences, surprise from {} quiet calls",
                               check.size(), calibrated.quiet_calls));
  const TriggerAgreement same = CompareTrigger(trigger, draft->tensors, check, kCheckCalls);
  const ConfigAgreement choice =
      CompareConfig(config, draft->tensors, keys.held_out.empty() ? keys.seen : keys.held_out);
  Note(provenance,
       fmt::format(
           "integers against floats: same role {:.2f} %, phase {:.2f} %, stage {:.2f} %, choice {:.2f} % "
           "(before the gate {:.2f} %) of {} {} keys",
           100 * same.role, 100 * same.phase, 100 * same.stage, 100 * choice.choice, 100 * choice.cheapest,
           keys.held_out.empty() ? keys.seen.size() : keys.held_out.size(),
           keys.held_out.empty() ? "seen" : "held-out"));
  draft->provenance = FormatProvenance(provenance);
  return ExportPolicy(settings.output, *draft);
}

}  // namespace

Result<std::vector<MeasurementFile>> ReadMeasurements(const std::vector<std::string>& paths) {
  std::vector<MeasurementFile> files;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(MeasurementFile file, ReadMeasurementFile(path));
    files.push_back(std::move(file));
  }
  return files;
}

Status Train(const TrainSettings& settings) {
  const int64_t start = MonotonicNanoseconds();
  DYNAMICCL_TRY(const Sha256Digest digest,
                settings.from.empty() ? TrainAndExport(settings) : FineTuneAndExport(settings));
  fmt::print("{}: written, sha256 {}, {:.1f} s\n", settings.output, ToHex(digest),
             static_cast<double>(MonotonicNanoseconds() - start) * 1e-9);
  return {};
}

}  // namespace dynamiccl::agents
