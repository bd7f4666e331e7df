// SPDX-License-Identifier: Apache-2.0
// Reads policies, sweeps and traces, and passes them to the functions in agents/evaluation. The policy's
// provenance says which keys were held out of the training.
#include "agents/eval_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "agents/evaluation/evaluation_report.h"
#include "agents/evaluation/policy_choosers.h"
#include "agents/json_result.h"
#include "agents/provenance.h"
#include "agents/train_command.h"
#include "src/policy/policy_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::agents {
namespace {

// The keys that the policy was trained on, and a function that assigns a judged key to a split. Topologies in
// files that training did not read count as held out.
struct TrainingSplit {
  HoldOut hold_out;
  std::vector<SweptKey> seen;
  bool judged_are_new = false;

  Split operator()(const SweptKey& key) const {
    return judged_are_new ? Split::kHeldOutTopology : SplitOf(key, hold_out);
  }
};

// Returns whether this file was read by the policy's training, or by an earlier training from which it went
// on.
Result<bool> WasRead(const std::vector<Provenance>& trainings, const std::string& kind,
                     const std::string& path) {
  DYNAMICCL_TRY(const InputFile file, HashInput(kind, path));
  return std::any_of(trainings.begin(), trainings.end(), [&](const Provenance& training) {
    return std::any_of(training.inputs.begin(), training.inputs.end(),
                       [&](const InputFile& input) { return input.sha256 == file.sha256; });
  });
}

Result<TrainingSplit> SplitFor(const EvalSettings& settings, const Policy& policy) {
  const std::vector<Provenance> trainings = AllTrainings(policy.provenance);
  TrainingSplit split{trainings.front().hold_out, {}, !settings.trained_on.empty()};
  for (const std::string& path : settings.measurements) {
    DYNAMICCL_TRY(const bool was_read, WasRead(trainings, "measurements", path));
    if (!was_read || !split.judged_are_new) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: the policy was trained on it", path),
                    "leave out --trained-on: the policy knows what its training held out");
  }
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files,
                ReadMeasurements(split.judged_are_new ? settings.trained_on : settings.measurements));
  for (SweptKey& key : KeysOf(files)) {
    if (SplitOf(key, split.hold_out) == Split::kSeen) split.seen.push_back(std::move(key));
  }
  return split;
}

// Chooses the best configuration that a sweep measured for exactly this key. Without such a measurement it
// leaves the choice to NCCL.
Chooser OwnSweepChooser(const std::vector<SweptKey>& swept) {
  return {"own sweep", [&swept](const SweptKey& key) {
            const auto same = [&](const SweptKey& own) {
              return own.topology == key.topology && own.question.collective == key.question.collective &&
                     own.question.bytes == key.question.bytes && own.default_choice;
            };
            const auto own = std::find_if(swept.begin(), swept.end(), same);
            return own == swept.end() ? kLeaveNcclAlone : OracleChoice(*own);
          }};
}

// Creates the choosers that need neither training nor trials. `seen` must outlive the choosers.
std::vector<Chooser> PlainChoosers(const Policies& policies, const std::vector<SweptKey>& seen) {
  std::vector<Chooser> choosers{{"default", [](const SweptKey&) { return kLeaveNcclAlone; }},
                                OwnSweepChooser(seen)};
  for (const auto& policy : policies) {
    std::vector<Chooser> own = PolicyChoosers(*policy);
    std::move(own.begin(), own.end(), std::back_inserter(choosers));
  }
  return choosers;
}

// Returns an error unless all policies are of one training: the split of the keys and the intervals over
// seeds do not hold for others.
Status CheckOneTraining(const EvalSettings& settings, const Policies& policies) {
  const Policy& first = *policies.front();
  for (size_t i = 1; i < policies.size(); ++i) {
    const Policy& other = *policies[i];
    if (other.training_data_id == first.training_data_id &&
        ParseProvenance(other.provenance).hold_out == ParseProvenance(first.provenance).hold_out)
      continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{} and {} were trained on other data, or with other parts held out",
                              settings.policies.front(), settings.policies[i]),
                    "judge policies of different trainings one by one");
  }
  return {};
}

Status JudgeMeasurements(const EvalSettings& settings, const Policies& policies, const ChooserMaker& choosers,
                         Evaluation& evaluation) {
  if (settings.measurements.empty()) return {};
  DYNAMICCL_CHECK_OK(CheckOneTraining(settings, policies));
  DYNAMICCL_TRY(const TrainingSplit split, SplitFor(settings, *policies.front()));
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  const std::vector<SweptKey> keys = KeysOf(files);
  evaluation.regrets = JudgeChoosers(split, keys, choosers(policies, split.seen, keys));
  if (!evaluation.regrets.empty()) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "no measured key has a default and two repeats to judge by"),
      "measure the library's own choice too: `dynamiccl sweep` does");
}

Status JudgeTraces(const EvalSettings& settings, const Policy& policy, Evaluation& evaluation) {
  std::vector<CallSequence> sequences;
  const std::vector<Provenance> trainings = AllTrainings(policy.provenance);
  for (const std::string& path : settings.traces) {
    DYNAMICCL_TRY(const bool was_read, WasRead(trainings, "trace", path));
    if (was_read) fmt::print(stderr, "{}: the policy was trained on it, so it shows no other job\n", path);
    DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
    if (trace.missing().any()) fmt::print(stderr, "{}: {}\n", path, Describe(trace.missing()));
    for (CallSequence& sequence : SequencesOf(trace, path)) sequences.push_back(std::move(sequence));
  }
  if (settings.traces.empty()) return {};
  if (sequences.empty()) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "no call in the traces carries a label to compare with"),
        "record a program that marks its phases (src/annotate/phase_marker.h), such as dynamiccl-zero");
  }
  evaluation.structures = {JudgePolicy(policy, sequences), JudgeRules(sequences)};
  return {};
}

Status Print(const EvalSettings& settings, const Evaluation& evaluation) {
  if (!JsonIsTheOutput(settings.json)) fmt::print("{}", FormatTables(evaluation));
  return WriteJsonResult(settings.json, FormatJson(evaluation));
}

}  // namespace

Result<Policies> ReadPolicies(const std::vector<std::string>& paths) {
  if (paths.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "no policy to judge"), "give --policy");
  Policies policies;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(auto policy, ReadPolicyFile(path));
    policies.push_back(std::move(policy));
  }
  return policies;
}

Status EvaluateBeside(const ChooserMaker& choosers, const EvalSettings& settings) {
  DYNAMICCL_TRY(const Policies policies, ReadPolicies(settings.policies));
  if (settings.traces.empty() && settings.measurements.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "nothing to judge the policy on"),
                    "give --trace, --measurements or both");
  }
  Evaluation evaluation;
  evaluation.policy_sha256 = ToHex(policies.at(0)->sha256);
  DYNAMICCL_CHECK_OK(JudgeMeasurements(settings, policies, choosers, evaluation));
  DYNAMICCL_CHECK_OK(JudgeTraces(settings, *policies.front(), evaluation));
  return Print(settings, evaluation);
}

Status Evaluate(const EvalSettings& settings) {
  return EvaluateBeside([](const Policies& policies, const std::vector<SweptKey>& seen,
                           const std::vector<SweptKey>&) { return PlainChoosers(policies, seen); },
                        settings);
}

}  // namespace dynamiccl::agents
