// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/structure_accuracy.h"

#include "agents/evaluation/structure_rules.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {
namespace {

template <typename Label>
void Count(Recognition& recognition, Label label, Label recognised, Label unknown) {
  if (label == unknown) return;
  if (recognised == unknown) {
    ++recognition.unknown;
  } else {
    ++(recognised == label ? recognition.right : recognition.wrong);
  }
}

void Add(Recognition& sum, const Recognition& part) {
  sum.right += part.right;
  sum.unknown += part.unknown;
  sum.wrong += part.wrong;
}

void CountCall(const IssuedCall& issued, const RecognisedStructure& known, SequenceResult& result,
               StructureAccuracy& accuracy) {
  const auto collective = static_cast<size_t>(issued.call.collective);
  const Role role = collective < kTunableCollectives ? known.next_role[collective] : Role::kUnknown;
  if (collective < kTunableCollectives) Count(result.role, issued.labelled_role, role, Role::kUnknown);
  Count(result.phase, issued.labelled_phase, known.phase, Phase::kUnknown);
  Count(result.stage, issued.labelled_stage, known.stage, ZeroStage::kUnknown);
  ++accuracy.role_confusion[static_cast<size_t>(issued.labelled_role)][static_cast<size_t>(role)];
  ++accuracy.stage_confusion[static_cast<size_t>(issued.labelled_stage)][static_cast<size_t>(known.stage)];
}

template <typename Recogniser>
void JudgeSequence(const CallSequence& sequence, Recogniser recogniser, StructureAccuracy& accuracy) {
  SequenceResult result;
  result.name = sequence.name;
  // All calls of a group are decided upon before any of them is seen.
  RecognisedStructure known = recogniser.recognised();
  uint64_t group = sequence.calls.front().call.call_number;
  for (const IssuedCall& issued : sequence.calls) {
    if (issued.call.call_number != group) known = recogniser.recognised();
    group = issued.call.call_number;
    CountCall(issued, known, result, accuracy);
    if (issued.labelled_stage != ZeroStage::kUnknown) result.true_stage = issued.labelled_stage;
    result.recognised_stage = recogniser.Step(issued.call).stage;
  }
  Add(accuracy.role, result.role);
  Add(accuracy.phase, result.phase);
  Add(accuracy.stage, result.stage);
  accuracy.sequences.push_back(std::move(result));
}

}  // namespace

StructureAccuracy JudgePolicy(const Policy& policy, const std::vector<CallSequence>& sequences) {
  StructureAccuracy accuracy;
  accuracy.recogniser = "policy";
  for (const CallSequence& sequence : sequences) JudgeSequence(sequence, StructureTrigger(policy), accuracy);
  return accuracy;
}

StructureAccuracy JudgeRules(const std::vector<CallSequence>& sequences) {
  StructureAccuracy accuracy;
  accuracy.recogniser = "rule list";
  for (const CallSequence& sequence : sequences) JudgeSequence(sequence, StructureRules(), accuracy);
  return accuracy;
}

}  // namespace dynamiccl::agents
