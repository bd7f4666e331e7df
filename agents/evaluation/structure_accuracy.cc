// SPDX-License-Identifier: Apache-2.0
// Runs all recognisers in one loop. The roles of all calls in a group are predicted before the recogniser
// sees any of these calls, as in a job.
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

template <typename Matrix>
void AddTo(Matrix& sum, const Matrix& part) {
  for (size_t i = 0; i < sum.size(); ++i) {
    for (size_t j = 0; j < sum.size(); ++j) sum[i][j] += part[i][j];
  }
}

// Index of the first call that is judged.
size_t BeginOf(const CallSequence& sequence, JudgedCalls calls) {
  if (calls == JudgedCalls::kAfter64Calls) return 64;
  return sequence.step_begins.size() > 1 ? sequence.step_begins[1] : sequence.calls.size() / 4;
}

void Judge(const CallSequence& sequence, size_t at, const RecognisedStructure& known, Role role,
           SequenceResult& result) {
  // Maximum number of judged calls of a sequence, so that long sequences do not outweigh others.
  constexpr size_t kMaxCalls = 256;
  const IssuedCall& issued = sequence.calls[at];
  for (const JudgedCalls calls : {JudgedCalls::kAfterOneStep, JudgedCalls::kAfter64Calls}) {
    const size_t begin = BeginOf(sequence, calls);
    if (at < begin || at >= begin + kMaxCalls) continue;
    Confusions& judged = result.judged[static_cast<size_t>(calls)];
    const bool tunable = static_cast<int>(issued.call.collective) < kTunableCollectives;
    if (tunable) ++judged.role[static_cast<size_t>(issued.labelled_role)][static_cast<size_t>(role)];
    ++judged.phase[static_cast<size_t>(issued.labelled_phase)][static_cast<size_t>(known.phase)];
    ++judged.stage[static_cast<size_t>(issued.labelled_stage)][static_cast<size_t>(known.stage)];
  }
}

void CountCall(const CallSequence& sequence, size_t at, const RecognisedStructure& known,
               SequenceResult& result, StructureAccuracy& accuracy) {
  const IssuedCall& issued = sequence.calls[at];
  const auto collective = static_cast<size_t>(issued.call.collective);
  const Role role = collective < kTunableCollectives
                        ? RoleOfNext(known, issued.call.collective, issued.call.bytes)
                        : Role::kUnknown;
  Judge(sequence, at, known, role, result);
  if (collective < kTunableCollectives) Count(result.role, issued.labelled_role, role, Role::kUnknown);
  Count(result.phase, issued.labelled_phase, known.phase, Phase::kUnknown);
  Count(result.stage, issued.labelled_stage, known.stage, ZeroStage::kUnknown);
  ++accuracy.role_confusion[static_cast<size_t>(issued.labelled_role)][static_cast<size_t>(role)];
  ++accuracy.stage_confusion[static_cast<size_t>(issued.labelled_stage)][static_cast<size_t>(known.stage)];
}

void JudgeSequence(const CallSequence& sequence, StructureRecogniser& recogniser,
                   StructureAccuracy& accuracy) {
  SequenceResult result;
  result.name = sequence.name;
  result.framework = sequence.framework;
  // The structure that was recognised from all calls before the present group.
  RecognisedStructure known = recogniser.recognised();
  uint64_t group = sequence.calls.front().call.call_number;
  for (size_t at = 0; at < sequence.calls.size(); ++at) {
    const IssuedCall& issued = sequence.calls[at];
    if (issued.call.call_number != group) known = recogniser.recognised();
    group = issued.call.call_number;
    CountCall(sequence, at, known, result, accuracy);
    if (issued.labelled_stage != ZeroStage::kUnknown) result.true_stage = issued.labelled_stage;
    result.recognised_stage = recogniser.Step(issued.call).stage;
  }
  Add(accuracy.role, result.role);
  Add(accuracy.phase, result.phase);
  Add(accuracy.stage, result.stage);
  for (size_t i = 0; i < kJudgedCalls; ++i) accuracy.judged[i].Add(result.judged[i]);
  accuracy.sequences.push_back(std::move(result));
}

}  // namespace

void Confusions::Add(const Confusions& other) {
  AddTo(role, other.role);
  AddTo(phase, other.phase);
  AddTo(stage, other.stage);
}

StructureAccuracy JudgeRecogniser(const std::string& name, const RecogniserMaker& make,
                                  const std::vector<CallSequence>& sequences) {
  StructureAccuracy accuracy;
  accuracy.recogniser = name;
  for (const CallSequence& sequence : sequences) JudgeSequence(sequence, *make(), accuracy);
  return accuracy;
}

StructureAccuracy JudgePolicy(const Policy& policy, const std::vector<CallSequence>& sequences) {
  const auto make = [&] { return std::make_unique<RecogniserOf<StructureAgent>>(StructureAgent(policy)); };
  return JudgeRecogniser("policy", make, sequences);
}

StructureAccuracy JudgeRules(const std::vector<CallSequence>& sequences) {
  const auto make = [] { return std::make_unique<RecogniserOf<StructureRules>>(StructureRules()); };
  return JudgeRecogniser("rule list", make, sequences);
}

}  // namespace dynamiccl::agents
