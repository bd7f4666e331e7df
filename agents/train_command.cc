// SPDX-License-Identifier: Apache-2.0
// The order of a training: read and hash the inputs, train the structure agent, train the config networks,
// train the trees on residuals with the means that the networks predict, quantise, calibrate the structure
// agent's thresholds on jobs that no training saw, compare integers with floats, write. With --from the
// structure agent's steps are done only if traces are given, and no trees are grown. Effects on steps, if
// there are any, are learnt after the times of calls.
#include "agents/train_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "agents/config/boosted_trees.h"
#include "agents/config/effect_training.h"
#include "agents/config/fine_tuning.h"
#include "agents/integer_reference.h"
#include "agents/json_result.h"
#include "agents/learnt_data.h"
#include "agents/policy_export.h"
#include "agents/structure/structure_calibration.h"
#include "agents/structure/structure_export.h"
#include "agents/structure/structure_training.h"
#include "agents/training_account.h"
#include "src/base/clock.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::agents {
namespace {

// Number of jobs of each framework and model family that no training iteration sees. They serve to calibrate
// the thresholds and to compare integers with floats.
constexpr int kCheckJobs = 2;
// Number of steps of each of these jobs. The thresholds use the calls from the third step on.
constexpr int kCheckSteps = 6;
// Number of calls of each sequence on which integers are compared with floats.
constexpr int kCheckCalls = 128;

double SecondsSince(int64_t start_ns) {
  return static_cast<double>(MonotonicNanoseconds() - start_ns) * 1e-9;
}

// Reads the sequences that the structure agent learns from. Fails if traces are given and none of their calls
// has a label.
Result<std::vector<CallSequence>> ReadSequences(const std::vector<std::string>& paths,
                                                Provenance& provenance) {
  std::vector<CallSequence> sequences;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(const InputFile input, HashInput("trace", path));
    provenance.inputs.push_back(input);
    DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
    if (trace.missing().any()) fmt::print(stderr, "{}: {}\n", path, Describe(trace.missing()));
    for (CallSequence& sequence : SequencesOf(trace, path)) sequences.push_back(std::move(sequence));
  }
  if (!sequences.empty() || paths.empty()) return sequences;
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "no call of the traces has a label of role or stage"),
      "record a job that names its stages (dynamiccl zero does), or give no traces");
}

// What was measured: keys, split into those that training may see and those held out, and effects on steps
// that training may see.
struct TrainingData {
  std::vector<SweptKey> seen;
  std::vector<SweptKey> held_out;
  std::vector<EffectSample> effects;
};

// Reads the measurements. Fails if they have no times, except if they have effects and a policy that has
// learnt from times is given. Says what cannot be held out because no file has it.
Result<TrainingData> ReadTrainingData(const TrainSettings& settings, TrainingAccount& account) {
  for (const std::string& path : settings.measurements) {
    DYNAMICCL_TRY(const InputFile input, HashInput("measurements", path));
    account.provenance.inputs.push_back(input);
  }
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  for (const std::string& what : NotInFiles(settings.hold_out, files))
    account.Say(fmt::format("nothing to hold out: no measurement is of {}", what));
  TrainingData data;
  for (SweptKey& key : KeysOf(files)) {
    const bool seen = SplitOf(key, settings.hold_out) == Split::kSeen;
    (seen ? data.seen : data.held_out).push_back(std::move(key));
  }
  data.effects = EffectSamplesOf(files, settings.hold_out);
  if (!data.seen.empty() || (!settings.from.empty() && !data.effects.empty())) return data;
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "nothing is left to train on: no measured config with two repeats "
                            "outside of what is held out"),
                  data.effects.empty()
                      ? "give a larger sweep, or hold out less"
                      : "effects on steps alone need a policy to begin with: --from starter");
}

// Fails if the policy `base` was trained on a key that is held out here: it could not be judged on it.
Status CheckHeldOutIsUnseen(const Policy& base, const std::vector<SweptKey>& held_out,
                            const Provenance& provenance) {
  const std::vector<Provenance> before = AllTrainings(base.provenance);
  std::vector<InputFile> sweeps;  // by SweptKey::file
  for (const InputFile& input : provenance.inputs)
    if (input.kind == "measurements") sweeps.push_back(input);
  for (const SweptKey& key : held_out) {
    const InputFile& sweep = sweeps.at(key.file);
    const auto same = [&](const InputFile& input) { return input.sha256 == sweep.sha256; };
    const auto saw = [&](const Provenance& training) {
      return std::any_of(training.inputs.begin(), training.inputs.end(), same) &&
             SplitOf(key, training.hold_out) == Split::kSeen;
    };
    if (std::none_of(before.begin(), before.end(), saw)) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{}: the policy was trained on {} of {} bytes on {}, which is held out here",
                              sweep.path, Name(key.question.collective), key.question.bytes, key.topology),
                    "hold out what the policy's own training held out, or judge on another sweep");
  }
  return {};
}

// Learns what configs do to steps, if any such effect was measured.
Status TrainOnEffects(const TrainSettings& settings, const std::vector<EffectSample>& samples,
                      PolicyTensors& tensors, TrainingAccount& account) {
  if (samples.empty()) return {};
  account.Learns("effects", ChecksumOf(samples));
  const int64_t start = MonotonicNanoseconds();
  EffectTrainingSettings training;
  training.seed = settings.seed;
  DYNAMICCL_TRY(const EffectErrors errors, AddEffects(samples, training, tensors));
  const double predicted = std::exp2(errors.predicted), nothing = std::exp2(errors.nothing);
  const Json held_out = {
      {"judged", errors.judged}, {"error_factor", predicted}, {"error_factor_of_no_effect", nothing}};
  account.Note(
      "effects",
      {{"measured", samples.size()},
       {"fabrics", errors.fabrics},
       {"fabrics_left_out", errors.judged == 0 ? Json() : held_out},
       {"seconds", SecondsSince(start)}},
      fmt::format("effects on steps: {} on {} fabrics{}", samples.size(), errors.fabrics,
                  errors.judged == 0
                      ? ", too few to judge predictions on others"
                      : fmt::format("; on a fabric left out, error a factor of {:.3f} (no effect {:.3f})",
                                    predicted, nothing)));
  return {};
}

FloatStructureNetwork TrainStructureAgent(StructureTrainingSettings training,
                                          const std::vector<CallSequence>& recorded,
                                          TrainingAccount& account) {
  training.observer = account.phases.Observer();
  account.phases.Begin("structure agent",
                       fmt::format("{} iterations on generated sequences and {} recorded",
                                   training.iterations, recorded.size()),
                       "sequences");
  StructureTrainingReport report;
  FloatStructureNetwork network = TrainStructure(recorded, training, &report);
  account.Learns("calls", report.checksum);
  account.Note("structure",
               {{"recorded", recorded.size()},
                {"from_a_policy", training.begin != nullptr},
                {"generated", report.generated},
                {"iterations", training.iterations},
                {"loss", report.loss},
                {"seconds", report.seconds}},
               fmt::format("structure: {}{} recorded and {} generated sequences, {} iterations, loss {:.3f}",
                           training.begin != nullptr ? "on top of the policy's, " : "", recorded.size(),
                           report.generated, training.iterations, report.loss));
  return network;
}

// Returns jobs that no training iteration sees.
std::vector<CallSequence> CheckJobs(uint64_t seed) {
  std::mt19937_64 random(seed + 1);
  JobPlan plan = Completed({});
  plan.jobs = kCheckJobs;
  plan.steps = kCheckSteps;
  return RandomJobs(plan, random);
}

// Sets the structure agent's thresholds by what it recognises in the jobs.
void Calibrate(const std::vector<CallSequence>& check, PolicyTensors& tensors, TrainingAccount& account) {
  const CalibrationReport calibrated = CalibrateStructure(check, {}, tensors);
  account.Note("thresholds", {{"sequences", check.size()}, {"quiet_calls", calibrated.quiet_calls}},
               fmt::format("structure: thresholds from {} sequences, surprise from {} quiet calls",
                           check.size(), calibrated.quiet_calls));
}

// Trains the structure agent of `tensors`, a copy of the policy `from`, further on the site's own calls.
Status FineTuneStructure(const TrainSettings& settings, const std::vector<CallSequence>& recorded,
                         PolicyTensors& tensors, TrainingAccount& account) {
  const FloatStructureNetwork begin = StructureNetworkOf(tensors);
  const FloatStructureNetwork network =
      TrainStructureAgent(StructureFineTuning(settings.seed, begin), recorded, account);
  account.phases.Begin("check", "thresholds");
  DYNAMICCL_CHECK_OK(ExportStructure(network, tensors));
  Calibrate(CheckJobs(settings.seed), tensors, account);
  return {};
}

Json ToJson(size_t configs, const ConfigTrainingReport& report) {
  return {{"measured_configs", configs},
          {"error_factor", std::exp2(report.error_octaves)},
          {"cost_model_error_factor", std::exp2(report.prior_octaves)},
          {"error_factor_within_keys", std::exp2(report.error_within_keys)},
          {"cost_model_error_factor_within_keys", std::exp2(report.prior_within_keys)},
          {"seconds", report.seconds}};
}

// Begins the phase in which the config agent's networks are trained, and returns its observer.
TrainingObserver BeginConfigPhase(const std::vector<ConfigSample>& samples, int iterations,
                                  TrainingAccount& account) {
  account.phases.Begin("config agent",
                       fmt::format("{} iterations on {} measured configs", iterations, samples.size()),
                       "measured configs");
  return account.phases.Observer();
}

ConfigNetworks TrainConfigAgent(const TrainSettings& settings, const std::vector<ConfigSample>& samples,
                                TrainingAccount& account) {
  ConfigTrainingSettings training;
  training.seed = settings.seed;
  training.iterations = settings.config_iterations;
  training.observer = BeginConfigPhase(samples, training.iterations, account);
  ConfigTrainingReport report;
  ConfigNetworks networks = TrainConfig(samples, training, &report);
  account.Note("config", ToJson(samples.size(), report),
               fmt::format("config: {} measured configs, {} iterations, error a factor of {:.3f} (cost "
                           "model {:.3f}), within a key {:.3f} ({:.3f})",
                           samples.size(), training.iterations, std::exp2(report.error_octaves),
                           std::exp2(report.prior_octaves), std::exp2(report.error_within_keys),
                           std::exp2(report.prior_within_keys)));
  return networks;
}

// Returns a policy in which only the trees are filled. In a build without XGBoost it is empty. The residuals
// of `samples` have the means that the networks predict (AtLevelsOf).
Result<std::unique_ptr<Policy>> TrainTreesFor(const TrainSettings& settings,
                                              const std::vector<ConfigSample>& samples,
                                              TrainingAccount& account) {
  auto policy = std::make_unique<Policy>();
  if (!CanTrainTrees()) {
    account.Note("trees", nullptr, "trees: none, this build has no XGBoost; the networks decide alone");
    return policy;
  }
  account.phases.Begin("trees", fmt::format("on {} measured configs", samples.size()));
  const int64_t start = MonotonicNanoseconds();
  TreeTrainingSettings training;
  training.seed = settings.seed;
  DYNAMICCL_CHECK_OK(TrainTrees(samples, training, policy->tensors));
  double error = 0;
  for (const ConfigSample& sample : samples)
    error += std::abs(PredictTreeResidual(policy->tensors, sample.inputs) / 65536.0 - sample.residual);
  const double factor = std::exp2(error / static_cast<double>(samples.size()));
  account.Note(
      "trees",
      {{"trees", policy->tensors.trees.count}, {"error_factor", factor}, {"seconds", SecondsSince(start)}},
      fmt::format("trees: {}, error a factor of {:.3f}", policy->tensors.trees.count, factor));
  return policy;
}

// Returns the samples of the configs that the cost model can price, or an error if there are none.
Result<std::vector<ConfigSample>> PricedSamplesOf(const std::vector<SweptKey>& keys) {
  std::vector<ConfigSample> samples = SamplesOf(keys);
  if (!samples.empty()) return samples;
  return MakeError(ErrorKind::kUnsupported, "the cost model can price none of the measured configs");
}

// Says which gain a config must promise before the policy uses it. ExportConfig sets it above the noise of
// the sweeps, so a policy from a noisy sweep leaves most calls to NCCL.
void SayGate(const PolicyTensors& tensors, TrainingAccount& account) {
  constexpr double kNoisyPercent = 20;
  const double percent = 100 * (std::exp2(tensors.config.gate / 65536.0) - 1);
  account.json["gate_percent"] = percent;
  account.Say(fmt::format("the policy uses a config that promises a gain of at least {:.1f} %{}", percent,
                          percent < kNoisyPercent
                              ? ""
                              : ": the sweeps are noisy, and sweeps of a quieter machine let it use more"));
}

// Extends the domain to the smallest box that contains the old training's domain and the new one.
void WidenDomain(const PolicyTensors& old, PolicyTensors& tensors) {
  for (size_t i = 0; i < kConfigInputs; ++i) {
    tensors.domain_min[i] = std::min(tensors.domain_min[i], old.domain_min[i]);
    tensors.domain_max[i] = std::max(tensors.domain_max[i], old.domain_max[i]);
  }
}

// A part of a policy: its name in the JSON, and its name in messages to the user.
struct PolicyPart {
  const char* name;
  const char* text;
};

// Says which parts of the policy `base` a training with --from keeps, which it trains further, and which it
// replaces. Networks for effects always begin anew, because the policy does not store the effects from which
// the old ones learnt.
void SayWhatIsKept(const TrainSettings& settings, const std::string& from, const TrainingData& data,
                   const PolicyTensors& base, TrainingAccount& account) {
  Json kept = Json::array(), trained = Json::array(), replaced = Json::array();
  std::string kept_text = "the range of NCCL releases", trained_text, replaced_text;
  const auto add = [&](bool is_trained, const PolicyPart& part) {
    (is_trained ? trained : kept).push_back(part.name);
    std::string& text = is_trained ? trained_text : kept_text;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", part.text);
  };
  add(!settings.traces.empty(), {"structure", "the structure agent (roles, phases, stages, thresholds)"});
  add(!data.seen.empty(), {"config", "the config agent's networks"});
  const bool has_trees = base.trees.count > 0;
  if (has_trees) add(false, {"tree_splits", "the trees' splits"});
  if (has_trees) add(!data.seen.empty(), {"tree_leaves", "the values at the trees' leaves"});
  const PolicyPart effects{"effects", "what configs do to steps"};
  if (base.effect.count > 0 && !data.effects.empty()) {
    replaced.push_back(effects.name);
    replaced_text = fmt::format("; learnt anew from these effects alone: {}", effects.text);
  } else if (base.effect.count > 0 || !data.effects.empty()) {
    add(!data.effects.empty(), effects);
  }
  account.Say(fmt::format("from {}: kept: {}; trained further: {}{}{}", from, kept_text,
                          trained_text.empty() ? "nothing" : trained_text, replaced_text,
                          data.seen.empty() ? "" : "; its domain is widened to that of the sweeps"));
  account.json["from"] = {{"file", from}, {"kept", kept}, {"trained", trained}, {"replaced", replaced}};
}

// Trains the config agent of `tensors`, a copy of the policy `from`, further on the times of calls.
Status FineTune(const TrainSettings& settings, const std::vector<SweptKey>& keys, const std::string& from,
                PolicyTensors& tensors, TrainingAccount& account) {
  const auto base = std::make_unique<const PolicyTensors>(tensors);
  DYNAMICCL_TRY(const std::vector<ConfigSample> samples, PricedSamplesOf(keys));
  account.Learns("times", ChecksumOf(samples));
  ConfigNetworks networks = NetworksOf(*base);
  ConfigTrainingReport report;
  ConfigTrainingSettings training = FineTuningSettings(settings.seed);
  training.observer = BeginConfigPhase(samples, training.iterations, account);
  ContinueTraining(networks, samples, training, &report);
  DYNAMICCL_CHECK_OK(ExportConfig(networks, samples, tensors));
  SayGate(tensors, account);
  WidenDomain(*base, tensors);
  RefreshLeaves(AtLevelsOf(networks, samples), tensors);
  FillGoldenFeatures(samples, tensors);
  account.Note(
      "config", ToJson(samples.size(), report),
      fmt::format("config: {} measured configs on top of {}, error a factor of {:.3f} (cost model "
                  "{:.3f})",
                  samples.size(), from, std::exp2(report.error_octaves), std::exp2(report.prior_octaves)));
  return {};
}

Result<Sha256Digest> FineTuneAndExport(const TrainSettings& settings, TrainingAccount& account) {
  Provenance& provenance = account.provenance;
  DYNAMICCL_TRY(const InputFile base_file, HashInput("policy", settings.from));
  provenance.inputs.push_back(base_file);
  DYNAMICCL_TRY(const auto base, ReadPolicyFile(settings.from));
  DYNAMICCL_TRY(const std::vector<CallSequence> recorded, ReadSequences(settings.traces, provenance));
  DYNAMICCL_TRY(const TrainingData data, ReadTrainingData(settings, account));
  DYNAMICCL_CHECK_OK(CheckHeldOutIsUnseen(*base, data.held_out, provenance));
  provenance.earlier = EarlierLines(base->provenance);
  const std::string from = std::filesystem::path(settings.from).filename().string();
  auto policy = std::make_unique<Policy>();
  policy->tensors = base->tensors;
  SayWhatIsKept(settings, from, data, base->tensors, account);
  if (!recorded.empty()) DYNAMICCL_CHECK_OK(FineTuneStructure(settings, recorded, policy->tensors, account));
  if (!data.seen.empty()) DYNAMICCL_CHECK_OK(FineTune(settings, data.seen, from, policy->tensors, account));
  DYNAMICCL_CHECK_OK(TrainOnEffects(settings, data.effects, policy->tensors, account));
  FillGoldenOutputs(policy->tensors);
  policy->provenance = FormatProvenance(provenance);
  policy->training_data_id = TrainingDataId(provenance);
  policy->min_nccl_version = base->min_nccl_version;
  policy->max_nccl_version = base->max_nccl_version;
  return ExportPolicy(settings.output, *policy);
}

// The float networks with which the integers are compared.
struct TrainedNetworks {
  const FloatStructureNetwork& structure;
  const ConfigNetworks& config;
};

// Reports how often the policy's integers decide like the float networks.
void NoteAgreement(const TrainedNetworks& networks, const Policy& policy,
                   const std::vector<CallSequence>& check, const TrainingData& keys,
                   TrainingAccount& account) {
  const StructureAgreement same = CompareStructure(networks.structure, policy.tensors, check, kCheckCalls);
  const std::vector<SweptKey>& compared = keys.held_out.empty() ? keys.seen : keys.held_out;
  const ConfigAgreement choice = CompareConfig(networks.config, policy.tensors, compared);
  account.Note(
      "integers_as_floats",
      {{"role", same.role},
       {"phase", same.phase},
       {"stage", same.stage},
       {"choice", choice.choice},
       {"choice_before_gate", choice.cheapest},
       {"keys", compared.size()},
       {"keys_held_out", !keys.held_out.empty()}},
      fmt::format(
          "integers against floats: same role {:.2f} %, phase {:.2f} %, stage {:.2f} %, choice {:.2f} % "
          "(before the gate {:.2f} %) of {} {} keys",
          100 * same.role, 100 * same.phase, 100 * same.stage, 100 * choice.choice, 100 * choice.cheapest,
          compared.size(), keys.held_out.empty() ? "seen" : "held-out"));
}

// The settings of a structure agent that is trained from nothing.
StructureTrainingSettings FirstTraining(const TrainSettings& settings) {
  return {.seed = settings.seed, .iterations = settings.structure_iterations};
}

Result<Sha256Digest> TrainAndExport(const TrainSettings& settings, TrainingAccount& account) {
  Provenance& provenance = account.provenance;
  DYNAMICCL_TRY(const std::vector<CallSequence> recorded, ReadSequences(settings.traces, provenance));
  DYNAMICCL_TRY(const TrainingData data, ReadTrainingData(settings, account));
  DYNAMICCL_TRY(const std::vector<ConfigSample> samples, PricedSamplesOf(data.seen));
  provenance.structure_iterations = settings.structure_iterations;
  provenance.config_iterations = settings.config_iterations;
  const FloatStructureNetwork structure = TrainStructureAgent(FirstTraining(settings), recorded, account);
  account.Learns("times", ChecksumOf(samples));
  const ConfigNetworks config = TrainConfigAgent(settings, samples, account);
  DYNAMICCL_TRY(const auto trees, TrainTreesFor(settings, AtLevelsOf(config, samples), account));

  account.phases.Begin("check", "thresholds, and integers against floats");
  const std::vector<CallSequence> check = CheckJobs(settings.seed);
  DYNAMICCL_TRY(const auto draft,
                MakePolicy({&structure, &check, &config, &samples, &trees->tensors}, provenance));
  SayGate(draft->tensors, account);
  Calibrate(check, draft->tensors, account);
  NoteAgreement({structure, config}, *draft, check, data, account);
  DYNAMICCL_CHECK_OK(TrainOnEffects(settings, data.effects, draft->tensors, account));
  FillGoldenOutputs(draft->tensors);
  draft->provenance = FormatProvenance(provenance);
  return ExportPolicy(settings.output, *draft);
}

// Reads and draws what the training would learn from, and prints its checksums. A policy that the training
// would go on from is not read.
Status SayInputs(const TrainSettings& settings, TrainingAccount& account) {
  DYNAMICCL_TRY(const std::vector<CallSequence> recorded, ReadSequences(settings.traces, account.provenance));
  DYNAMICCL_TRY(const TrainingData data, ReadTrainingData(settings, account));
  const FloatStructureNetwork any;
  std::mt19937_64 random(settings.seed);
  if (settings.from.empty() || !recorded.empty()) {
    const StructureTrainingSettings training =
        settings.from.empty() ? FirstTraining(settings) : StructureFineTuning(settings.seed, any);
    account.Learns("calls", ChecksumOf(GeneratedSequences(training, random)));
  }
  if (!data.seen.empty()) {
    DYNAMICCL_TRY(const std::vector<ConfigSample> samples, PricedSamplesOf(data.seen));
    account.Learns("times", ChecksumOf(samples));
  }
  if (!data.effects.empty()) account.Learns("effects", ChecksumOf(data.effects));
  for (const std::string& learnt : account.provenance.learnt) account.Say("learns from " + learnt);
  return {};
}

// Sorts paths by their files' names, so that neither folders nor a shell's order of names change the policy.
void SortByName(std::vector<std::string>& paths) {
  const auto key = [](const std::string& path) {
    return std::tuple(std::filesystem::path(path).filename().string(), path);
  };
  std::ranges::sort(paths, {}, key);
}

// Trains and writes the policy, and adds it to the report.
Status MakePolicyFile(const TrainSettings& settings, TrainingAccount& account) {
  const int64_t start = MonotonicNanoseconds();
  DYNAMICCL_TRY(const Sha256Digest digest, settings.from.empty() ? TrainAndExport(settings, account)
                                                                 : FineTuneAndExport(settings, account));
  account.Say(
      fmt::format("{}: written, sha256 {}, {:.1f} s", settings.output, ToHex(digest), SecondsSince(start)));
  account.json["output"] = settings.output;
  account.json["sha256"] = ToHex(digest);
  account.json["seconds"] = SecondsSince(start);
  return {};
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

Status Train(TrainSettings settings) {
  if (settings.output.empty() && !settings.inputs_only)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "nothing says where to write the policy"),
                    "name the file: -o run.dcpolicy");
  SortByName(settings.traces);
  SortByName(settings.measurements);
  TrainingAccount account(settings);
  DYNAMICCL_CHECK_OK(settings.inputs_only ? SayInputs(settings, account) : MakePolicyFile(settings, account));
  account.json["seed"] = settings.seed;
  account.json["inputs"] = Json::array();
  for (const InputFile& input : account.provenance.inputs)
    account.json["inputs"].push_back({{"kind", input.kind}, {"file", input.path}, {"sha256", input.sha256}});
  return WriteJsonResult(settings.json, account.json.dump(1) + "\n");
}

}  // namespace dynamiccl::agents
