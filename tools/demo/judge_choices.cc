// SPDX-License-Identifier: Apache-2.0
// Compares what the policy chose for the evaluated job's calls with the default and with the best of the
// sweep.
#include <algorithm>
#include <set>

#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"
#include "tools/demo/demo_steps.h"
#include "tools/demo/trainer_run.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

// Number of calls of one collective and size class in a run, and the configs that were chosen for them.
struct KeyUse {
  uint64_t bytes = 0;
  int64_t calls = 0;
  // By the config's name: the config and the number of calls that got it.
  std::map<std::string, std::pair<CollectiveConfig, int64_t>> choices;
};
using KeyUses = std::map<std::pair<Collective, SizeClass>, KeyUse>;

// Counts the calls of a run by collective and size class. A call that the policy did not decide counts as
// left to NCCL.
KeyUses UsesOf(const SectionCalls& section) {
  KeyUses uses;
  for (const TraceCall& call : section.calls) {
    const CollectiveCall& issued = call.issued.call;
    if (static_cast<int>(issued.collective) >= kTunableCollectives) continue;
    KeyUse& use = uses[{issued.collective, SizeClassOf(issued.bytes)}];
    use.bytes = issued.bytes;
    ++use.calls;
    const bool ours = call.decision && call.decision->decided_by == DecidedBy::kPolicy;
    const CollectiveConfig config = ours ? call.decision->config : kLeaveNcclAlone;
    auto& choice = use.choices[Name(config)];
    choice.first = config;
    ++choice.second;
  }
  return uses;
}

CollectiveConfig MostUsed(const KeyUse& use) {
  const auto fewer = [](const auto& a, const auto& b) { return a.second.second < b.second.second; };
  return std::max_element(use.choices.begin(), use.choices.end(), fewer)->second.first;
}

bool IsHeldOut(const SweptConfigs& swept, Collective collective, SizeClass size_class) {
  const auto classes = swept.held_out_classes.find(collective);
  return classes != swept.held_out_classes.end() && classes->second.contains(size_class);
}

// The measurements of this topology, collective and size class in the sweep, or null.
const SweepCell* FindCell(const std::vector<SweepCell>& cells, const std::string& topology,
                          Collective collective, SizeClass size_class) {
  const auto same = [&](const SweepCell& cell) {
    return cell.topology == topology && cell.collective == collective &&
           SizeClassOf(cell.bytes) == size_class;
  };
  const auto cell = std::find_if(cells.begin(), cells.end(), same);
  return cell == cells.end() ? nullptr : &*cell;
}

ChoiceRow Compare(const SweepCell& cell, const CollectiveConfig& choice) {
  const TimedConfig by_default = DefaultOf(cell);
  const TimedConfig ours = ChoiceOf(cell, choice);
  const TimedConfig best = BestOf(cell);
  return {.collective = std::string(Name(cell.collective)),
          .bytes = cell.bytes,
          .topology = cell.topology,
          .default_config = Name(by_default.config),
          .our_config = Name(choice),
          .best_config = Name(best.config),
          .default_us = by_default.microseconds,
          .our_us = ours.microseconds,
          .best_us = best.microseconds};
}

// State that the functions of this file share.
struct Judgement {
  DemoSession& session;
  const SweptConfigs& swept;
  const Policy& policy;
  std::vector<SweepCell> cells;
  // Collectives and size classes for which a ZeRO stage already has a row in the result.
  std::set<std::pair<Collective, SizeClass>> used;
};

void AddStageRows(int stage, const KeyUses& uses, int64_t steps, Judgement& judgement) {
  const std::string& topology = judgement.session.plan().topology;
  for (const auto& [key, use] : uses) {
    const SweepCell* cell = FindCell(judgement.cells, topology, key.first, key.second);
    if (cell == nullptr) continue;
    ChoiceRow row = Compare(*cell, MostUsed(use));
    row.stage = stage;
    row.bytes = use.bytes;
    row.calls_per_step = static_cast<double>(use.calls) / static_cast<double>(std::max<int64_t>(steps, 1));
    row.size_held_out = IsHeldOut(judgement.swept, key.first, key.second);
    judgement.used.insert(key);
    judgement.session.result().choices.push_back(std::move(row));
  }
}

// Adds rows for measurements that the agents did not see and that no ZeRO stage called. The choice in such a
// row is the policy's answer for a call of unknown role.
void AddHeldOutRows(Judgement& judgement) {
  const DemoPlan& plan = judgement.session.plan();
  for (const SweepCell& cell : judgement.cells) {
    const SizeClass size_class = SizeClassOf(cell.bytes);
    const bool far = cell.topology == plan.held_out_topology;
    const bool between = cell.topology == plan.topology &&
                         IsHeldOut(judgement.swept, cell.collective, size_class) &&
                         !judgement.used.contains({cell.collective, size_class});
    if (!far && !between) continue;
    const auto same = [&](const MeasurementContext& context) { return context.topology == cell.topology; };
    const auto& contexts = judgement.swept.all.contexts;
    const auto context = std::find_if(contexts.begin(), contexts.end(), same);
    if (context == contexts.end()) continue;
    ConfigQuestion question{cell.collective, cell.bytes, {}};
    for (const Measurement* row : cell.rows) {
      question.allowed.set(ConfigIndex(row->config.algorithm, row->config.protocol));
    }
    ChoiceRow row =
        Compare(cell, ChooseConfig(judgement.policy, context->model, QuestionOfJobs(question)).config);
    row.size_held_out = IsHeldOut(judgement.swept, cell.collective, size_class);
    row.topology_held_out = far;
    judgement.session.result().choices.push_back(std::move(row));
  }
}

void CountDecisions(int stage, const SectionCalls& section, DemoResult& result) {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const TraceCall& call : section.calls) {
    if (call.decision) ++counts[{std::string(Name(call.decision->decided_by)), Name(call.decision->config)}];
  }
  for (const auto& [key, calls] : counts) result.decisions.push_back({stage, key.first, key.second, calls});
}

void AddFingerprint(int stage, const KeyUses& uses, int64_t steps, DemoResult& result) {
  std::map<Collective, FingerprintRow> rows;
  const double per_step = 1.0 / static_cast<double>(std::max<int64_t>(steps, 1));
  for (const auto& [key, use] : uses) {
    FingerprintRow& row = rows[key.first];
    row.stage = stage;
    row.collective = std::string(Name(key.first));
    row.calls_per_step += static_cast<double>(use.calls) * per_step;
    row.bytes_per_step += static_cast<double>(use.calls) * static_cast<double>(use.bytes) * per_step;
  }
  for (auto& [collective, row] : rows) result.fingerprints.push_back(std::move(row));
}

// Reads the trace of the run that trained in this ZeRO stage under the policy. Does nothing if the run
// failed.
Status JudgeStage(int stage, Judgement& judgement) {
  DemoSession& session = judgement.session;
  const std::string label = CompareLabel(stage, kOurArm);
  if (!session.Finished(label)) return {};
  const std::string path = TracePath(session, label);
  DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
  if (trace.sections.empty()) return MakeError(ErrorKind::kInternal, "the trace of stage {} is empty", stage);
  const SectionCalls section = CallsOf(trace.sections.front());
  const KeyUses uses = UsesOf(section);
  AddStageRows(stage, uses, session.plan().compared_steps, judgement);
  CountDecisions(stage, section, session.result());
  AddFingerprint(stage, uses, session.plan().compared_steps, session.result());
  session.result().recognition.push_back({stage, RecogniseStages(judgement.policy, section)});
  return {};
}

}  // namespace

Status JudgeChoices(DemoSession& session, const std::string& policy_path, const SweptConfigs& swept) {
  DYNAMICCL_TRY(const std::unique_ptr<const Policy> policy, ReadPolicyFile(policy_path));
  Judgement judgement{session, swept, *policy, CellsOf(swept.all), {}};
  for (int stage = 0; stage < kZeroStageCount; ++stage) DYNAMICCL_CHECK_OK(JudgeStage(stage, judgement));
  AddHeldOutRows(judgement);
  return {};
}

}  // namespace dynamiccl
