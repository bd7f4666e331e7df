// SPDX-License-Identifier: Apache-2.0
#include "agents/eval_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "agents/evaluation/config_baselines.h"
#include "agents/evaluation/evaluation_report.h"
#include "agents/provenance.h"
#include "agents/train_command.h"
#include "src/policy/policy_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::agents {
namespace {

Status JudgeMeasurements(const EvalSettings& settings, const Policy& policy, Evaluation& evaluation) {
  if (settings.measurements.empty()) return {};
  const HoldOut hold_out = ParseProvenance(policy.provenance).hold_out;
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  const std::vector<SweptKey> keys = KeysOf(files);
  std::vector<SweptKey> seen;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(seen),
               [&](const SweptKey& key) { return SplitOf(key, hold_out) == Split::kSeen; });
  evaluation.regrets = JudgeChoosers(keys, hold_out, AllChoosers(policy, seen));
  if (!evaluation.regrets.empty()) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "no measured key has a default and two repeats to judge by"),
      "measure the library's own choice too: `dynamiccl sweep` does");
}

Status JudgeTraces(const EvalSettings& settings, const Policy& policy, Evaluation& evaluation) {
  std::vector<CallSequence> sequences;
  for (const std::string& path : settings.traces) {
    DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
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
  if (settings.json == "-") {
    fmt::print("{}", FormatJson(evaluation));
    return {};
  }
  fmt::print("{}", FormatTables(evaluation));
  if (settings.json.empty()) return {};
  std::ofstream file(settings.json);
  file << FormatJson(evaluation);
  file.close();
  if (!file) return MakeError(ErrorKind::kUnavailable, "{}: cannot be written", settings.json);
  return {};
}

}  // namespace

Status Evaluate(const EvalSettings& settings) {
  if (settings.traces.empty() && settings.measurements.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "nothing to judge the policy on"),
                    "give --trace, --measurements or both");
  }
  DYNAMICCL_TRY(const auto policy, ReadPolicyFile(settings.policy));
  Evaluation evaluation;
  evaluation.policy_sha256 = ToHex(policy->sha256);
  DYNAMICCL_CHECK_OK(JudgeMeasurements(settings, *policy, evaluation));
  DYNAMICCL_CHECK_OK(JudgeTraces(settings, *policy, evaluation));
  return Print(settings, evaluation);
}

}  // namespace dynamiccl::agents
