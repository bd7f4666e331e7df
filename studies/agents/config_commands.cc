// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/config_commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "agents/evaluation/policy_choosers.h"
#include "agents/train_command.h"
#include "studies/agents/baselines/config_baselines.h"
#include "studies/agents/baselines/config_baselines_learned.h"
#include "studies/agents/baselines/config_baselines_probing.h"
#include "studies/agents/baselines/hypotheses.h"
#include "studies/agents/baselines/scenarios.h"

namespace dynamiccl::agents {
namespace {

// Returns all choosers: the rules, and each policy's own choosers and baselines. The policy's number is their
// seed.
std::vector<Chooser> ChoosersOf(const Policies& policies, const std::vector<SweptKey>& seen,
                                const std::vector<SweptKey>& judged) {
  std::vector<Chooser> choosers = RuleChoosers(seen);
  const auto add = [&](std::vector<Chooser> more) {
    std::move(more.begin(), more.end(), std::back_inserter(choosers));
  };
  uint64_t seed = 0;
  for (const auto& policy : policies) {
    ++seed;
    add(PolicyChoosers(*policy));
    add(ProbingChoosers(*policy, judged, seed));
    if (!seen.empty()) add({NoPriorChooser(seen, seed), FittedQChooser(seen, seed)});
  }
  return choosers;
}

}  // namespace

Status JudgeBesideBaselines(const EvalSettings& settings) {
  return EvaluateBeside(ChoosersOf, settings);
}

Status PrintScenarios(const EvalSettings& settings) {
  DYNAMICCL_TRY(const Policies policies, ReadPolicies(settings.policies));
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  fmt::print("{}", FormatScenarios(*policies.front(), KeysOf(files)));
  return {};
}

Status PrintHypotheses(const HypothesesSettings& settings) {
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  std::string structure;
  if (!settings.structure_json.empty()) {
    std::ifstream file(settings.structure_json);
    structure.assign(std::istreambuf_iterator<char>(file), {});
    if (!file || structure.empty())
      return MakeError(ErrorKind::kNotFound, "{}: cannot be read", settings.structure_json);
  }
  DYNAMICCL_TRY(const std::string page, FormatHypotheses(KeysOf(files), structure));
  fmt::print("{}", page);
  return {};
}

}  // namespace dynamiccl::agents
