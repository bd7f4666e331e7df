// SPDX-License-Identifier: Apache-2.0
// Runs the integer network over all sequences, as a job would. For each answer it collects by how much the
// logit of the best class exceeded that of the second. A threshold is then an order statistic of these leads.
#include "agents/structure/structure_calibration.h"

#include <algorithm>
#include <functional>

#include "src/policy/structure_network.h"

namespace dynamiccl::agents {
namespace {

// A lead of 8 in natural logarithms: the best class is e^8 = 3000 times as likely as the second. Logits have
// the fraction bits of kTokenOne.
constexpr int32_t kWidestMargin = 8 * kTokenOne;

// The lead of the best class's logit over the second best, and whether the best class was the label.
struct Answer {
  int32_t lead;
  bool right;
};

Answer AnswerOf(const StructureLogits& logits, int first, int classes, int label) {
  const auto* const begin = logits.begin() + first;
  const auto* const best = std::max_element(begin, begin + classes);
  int32_t second = INT32_MIN;
  for (const auto* logit = begin; logit != begin + classes; ++logit) {
    if (logit != best) second = std::max(second, *logit);
  }
  return {*best - second, best - begin == label};
}

// The answers about role, phase and stage, and how surprising the calls were.
struct Answers {
  std::vector<Answer> role, phase, stage;
  // Negative log-likelihoods of the calls from the third step on (quiet calls).
  std::vector<int32_t> surprises;
};

// Adds the answers about role, phase and stage. `next` is the first call of a group and carries the labels.
void AddAnswers(const StructureLogits& logits, const IssuedCall& next, Answers& answers) {
  const auto collective = static_cast<int>(next.call.collective);
  const bool told_by_size = next.call.collective == Collective::kAllReduce && next.call.bytes <= kTinyBytes;
  if (next.labelled_role != Role::kUnknown && collective < kTunableCollectives && !told_by_size) {
    answers.role.push_back(
        AnswerOf(logits, collective * kRoleClasses, kRoleClasses, static_cast<int>(next.labelled_role) - 1));
  }
  if (next.labelled_phase != Phase::kUnknown) {
    answers.phase.push_back(
        AnswerOf(logits, kPhaseRow, kPhaseClasses, static_cast<int>(next.labelled_phase) - 1));
  }
  if (next.labelled_stage != ZeroStage::kUnknown) {
    answers.stage.push_back(
        AnswerOf(logits, kStageRow, kStageClasses, static_cast<int>(next.labelled_stage)));
  }
}

// Runs one sequence through the network from an empty state.
void Collect(const StructureNetwork& network, const CallSequence& sequence, Answers& answers) {
  const size_t quiet = sequence.step_begins.size() > 2 ? sequence.step_begins[2] : sequence.calls.size();
  CallTokenizer tokenizer;
  LstmState state;
  NextCall next{};
  for (size_t i = 0; i < sequence.calls.size(); ++i) {
    const CollectiveCall& call = sequence.calls[i].call;
    if (i >= quiet) {
      answers.surprises.push_back(next.collective[NextCollectiveClass(call.collective)] +
                                  next.size[NextSizeClass(call.bytes)]);
    }
    network.StepOverCall(tokenizer.Next(call), state);
    network.Recognise(state, next);
    const bool group_ends =
        i + 1 < sequence.calls.size() && sequence.calls[i + 1].call.call_number != call.call_number;
    if (group_ends) AddAnswers(network.Logits(state), sequence.calls[i + 1], answers);
  }
}

// The smallest margin for which the wanted share of answers is right. Only answers whose lead is at least the
// margin count.
int32_t MarginFor(std::vector<Answer> answers, double share_right) {
  std::sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) { return a.lead > b.lead; });
  int32_t margin = kWidestMargin;
  size_t right = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    right += answers[i].right ? 1 : 0;
    const bool last_of_its_lead = i + 1 == answers.size() || answers[i + 1].lead != answers[i].lead;
    if (last_of_its_lead && static_cast<double>(right) >= share_right * static_cast<double>(i + 1))
      margin = answers[i].lead;
  }
  return std::clamp(margin, 1, kWidestMargin);
}

// The threshold that at most the permitted share of quiet calls exceeds.
int32_t SurpriseFor(std::vector<int32_t> surprises, double false_alarms) {
  if (surprises.empty()) return 1 << 16;
  const auto allowed = static_cast<size_t>(false_alarms * static_cast<double>(surprises.size()));
  std::sort(surprises.begin(), surprises.end(), std::greater<>());
  return surprises[std::min(allowed, surprises.size() - 1)] + 1;
}

}  // namespace

CalibrationReport CalibrateStructure(const std::vector<CallSequence>& sequences,
                                     const StructureCalibration& calibration, PolicyTensors& tensors) {
  const StructureNetwork network(tensors);
  Answers answers;
  for (const CallSequence& sequence : sequences) Collect(network, sequence, answers);
  tensors.structure.role_margin = MarginFor(answers.role, calibration.answers_right);
  tensors.structure.phase_margin = MarginFor(answers.phase, calibration.answers_right);
  tensors.structure.stage_margin = MarginFor(answers.stage, calibration.answers_right);
  tensors.structure.surprise = SurpriseFor(answers.surprises, calibration.false_alarms);
  return {answers.surprises.size()};
}

}  // namespace dynamiccl::agents
