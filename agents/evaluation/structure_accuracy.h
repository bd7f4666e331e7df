// SPDX-License-Identifier: Apache-2.0
// Measures how well roles, phases and stages are recognised on labelled sequences, call by call, as in a job:
// the structure recognised before a call is compared with the call's label.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/structure/call_sequence.h"
#include "src/policy/policy.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {

// Counts of labelled calls by how they were recognised.
struct Recognition {
  uint64_t right = 0, unknown = 0, wrong = 0;

  uint64_t calls() const { return right + unknown + wrong; }
  double share_right() const {
    return calls() == 0 ? 0 : static_cast<double>(right) / static_cast<double>(calls());
  }
};

template <size_t kClasses>
// Numbers of calls, indexed by [label][recognised].
using Confusion = std::array<std::array<uint64_t, kClasses>, kClasses>;

template <size_t kClasses>
// The harmonic mean of precision and recall (F1), averaged over the labels that occur. The class `unknown` is
// no label; as an answer it counts as a miss. The result is 0 if no call has a label.
double MacroF1(const Confusion<kClasses>& calls, size_t unknown) {
  double sum = 0;
  int labels = 0;
  for (size_t label = 0; label < kClasses; ++label) {
    if (label == unknown) continue;
    uint64_t labelled = 0, recognised = 0;
    for (size_t other = 0; other < kClasses; ++other) {
      labelled += calls[label][other];
      // Where the true label is unknown, an answer is not counted as wrong.
      if (other != unknown) recognised += calls[other][label];
    }
    if (labelled == 0) continue;
    ++labels;
    sum += 2.0 * static_cast<double>(calls[label][label]) / static_cast<double>(labelled + recognised);
  }
  return labels == 0 ? 0 : sum / labels;
}

// Confusion matrices of the three questions: role, phase and stage.
struct Confusions {
  Confusion<kLabelledRoles> role{};
  Confusion<kPhases> phase{};
  Confusion<kZeroStages> stage{};

  double role_f1() const { return MacroF1(role, static_cast<size_t>(Role::kUnknown)); }
  double phase_f1() const { return MacroF1(phase, static_cast<size_t>(Phase::kUnknown)); }
  double stage_f1() const { return MacroF1(stage, static_cast<size_t>(ZeroStage::kUnknown)); }
  void Add(const Confusions& other);
};

// Selects the calls that are judged: those after a job's first step, or those after its first 64 calls. At
// most 256 calls of each sequence are judged, so that long ones do not outweigh the others.
enum class JudgedCalls : uint8_t { kAfterOneStep, kAfter64Calls };
// The number of enumerators of JudgedCalls.
inline constexpr size_t kJudgedCalls = 2;

// The result of one sequence.
struct SequenceResult {
  std::string name;
  // Framework and stage are copied from the CallSequence that was judged.
  std::string framework;
  ZeroStage true_stage = ZeroStage::kUnknown;
  // Stage recognised after the last call.
  ZeroStage recognised_stage = ZeroStage::kUnknown;
  Recognition role, phase, stage;
  // The confusion matrices for each kind of JudgedCalls.
  std::array<Confusions, kJudgedCalls> judged{};
};

// The result of one recogniser over all sequences.
struct StructureAccuracy {
  std::string recogniser;
  Recognition role, phase, stage;
  Confusion<kLabelledRoles> role_confusion{};
  Confusion<kZeroStages> stage_confusion{};
  // The confusion matrices for each kind of JudgedCalls, added up over all sequences.
  std::array<Confusions, kJudgedCalls> judged{};
  std::vector<SequenceResult> sequences;
};

// Recognises the structure of one sequence, call by call. One object is used for one sequence.
class StructureRecogniser {
 public:
  virtual ~StructureRecogniser() = default;
  // Returns the structure that was recognised from the calls that Step() was given.
  virtual const RecognisedStructure& recognised() const = 0;
  virtual const RecognisedStructure& Step(const CollectiveCall& call) = 0;
};

// Adapts a class that has recognised() and Step(), such as StructureAgent.
template <typename Recogniser>
class RecogniserOf final : public StructureRecogniser {
 public:
  explicit RecogniserOf(Recogniser recogniser) : recogniser_(std::move(recogniser)) {}
  const RecognisedStructure& recognised() const override { return recogniser_.recognised(); }
  const RecognisedStructure& Step(const CollectiveCall& call) override { return recogniser_.Step(call); }

 private:
  Recogniser recogniser_;
};

// Judges a new recogniser, created by `make`, on each sequence. Where a sequence has no marked steps, its
// first quarter is treated as the first step.
using RecogniserMaker = std::function<std::unique_ptr<StructureRecogniser>()>;
StructureAccuracy JudgeRecogniser(const std::string& name, const RecogniserMaker& make,
                                  const std::vector<CallSequence>& sequences);
StructureAccuracy JudgePolicy(const Policy& policy, const std::vector<CallSequence>& sequences);
StructureAccuracy JudgeRules(const std::vector<CallSequence>& sequences);

}  // namespace dynamiccl::agents
