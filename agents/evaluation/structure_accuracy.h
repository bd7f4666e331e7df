// SPDX-License-Identifier: Apache-2.0
// How well roles, phases and stages are recognised on labelled sequences, call by call, as a job would see
// it: what is known before a call against the call's label.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "agents/evaluation/structure_forest.h"
#include "agents/evaluation/structure_markov.h"
#include "agents/trigger/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Calls with a label: recognised rightly, not recognised, recognised wrongly.
struct Recognition {
  uint64_t right = 0, unknown = 0, wrong = 0;

  uint64_t calls() const { return right + unknown + wrong; }
  double share_right() const {
    return calls() == 0 ? 0 : static_cast<double>(right) / static_cast<double>(calls());
  }
};

// Calls: [label][recognised].
template <size_t kClasses>
using Confusion = std::array<std::array<uint64_t, kClasses>, kClasses>;

// Mean over the labels that occur of the harmonic mean of precision and recall; `unknown` is no label, and as
// an answer it is a miss. 0 without a labelled call.
template <size_t kClasses>
double MacroF1(const Confusion<kClasses>& calls, size_t unknown) {
  double sum = 0;
  int labels = 0;
  for (size_t label = 0; label < kClasses; ++label) {
    if (label == unknown) continue;
    uint64_t labelled = 0, recognised = 0;
    for (size_t other = 0; other < kClasses; ++other) {
      labelled += calls[label][other];
      // An answer where no label is known is not wrong.
      if (other != unknown) recognised += calls[other][label];
    }
    if (labelled == 0) continue;
    ++labels;
    sum += 2.0 * static_cast<double>(calls[label][label]) / static_cast<double>(labelled + recognised);
  }
  return labels == 0 ? 0 : sum / labels;
}

struct Confusions {
  Confusion<kRoles> role{};
  Confusion<kPhases> phase{};
  Confusion<kZeroStages> stage{};

  double role_f1() const { return MacroF1(role, static_cast<size_t>(Role::kUnknown)); }
  double phase_f1() const { return MacroF1(phase, static_cast<size_t>(Phase::kUnknown)); }
  double stage_f1() const { return MacroF1(stage, static_cast<size_t>(ZeroStage::kUnknown)); }
  void Add(const Confusions& other);
};

// Which calls are judged: those after a job's first step, or after its first 64 calls, whether that is a step
// or not; at most 256 of each sequence, so that long ones do not outweigh the others.
enum class JudgedCalls : uint8_t { kAfterOneStep, kAfter64Calls };
inline constexpr size_t kJudgedCalls = 2;

struct SequenceResult {
  std::string name;
  std::string framework;  // as CallSequence has it
  ZeroStage true_stage = ZeroStage::kUnknown;
  ZeroStage recognised_stage = ZeroStage::kUnknown;  // after the last call
  Recognition role, phase, stage;
  std::array<Confusions, kJudgedCalls> judged{};  // by JudgedCalls
};

struct StructureAccuracy {
  std::string recogniser;
  Recognition role, phase, stage;
  Confusion<kRoles> role_confusion{};
  Confusion<kZeroStages> stage_confusion{};
  std::array<Confusions, kJudgedCalls> judged{};  // by JudgedCalls, of all sequences
  std::vector<SequenceResult> sequences;
};

// Sequences whose steps are not marked count as if their first step were its first quarter.
StructureAccuracy JudgePolicy(const Policy& policy, const std::vector<CallSequence>& sequences);
StructureAccuracy JudgeRules(const std::vector<CallSequence>& sequences);
StructureAccuracy JudgeForests(const StructureForests& forests, const std::vector<CallSequence>& sequences);
StructureAccuracy JudgeMarkov(const MarkovModel& model, const std::vector<CallSequence>& sequences);

}  // namespace dynamiccl::agents
