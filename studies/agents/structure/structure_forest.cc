// SPDX-License-Identifier: Apache-2.0
// Features and training rows of the forests.
#include "studies/agents/structure/structure_forest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "src/policy/structure_layout.h"

namespace dynamiccl::agents {
namespace {

// One row is made for this many calls of a sequence, because neighbours hardly differ.
constexpr size_t kStride = 3;

uint8_t StepOf(double share) {
  return static_cast<uint8_t>(std::clamp(static_cast<int>(share * kFeatureSteps), 0, kFeatureSteps - 1));
}
int Octave(uint64_t bytes) {
  return std::max(static_cast<int>(std::bit_width(bytes)) - 1, 0);
}

constexpr size_t HistogramRow(Collective collective) {
  return static_cast<size_t>(IsExchange(collective) ? Collective::kSendRecv : collective);
}

// Adds a row unless its label is unknown (-1).
void AddRow(const std::vector<uint8_t>& features, int label, ForestSamples& samples) {
  if (label < 0) return;
  samples.features.insert(samples.features.end(), features.begin(), features.end());
  samples.labels.push_back(static_cast<uint8_t>(label));
}

// Training rows of each question.
struct Samples {
  std::array<ForestSamples, kTunableCollectives> roles;
  ForestSamples phase, stage;

  Samples() {
    for (ForestSamples& role : roles) role.width = CallHistogram::kWidth, role.classes = kRoleClasses;
    phase.width = stage.width = CallHistogram::kWidth;
    phase.classes = kPhaseClasses;
    stage.classes = kStageClasses;
  }
};

void AddSequence(const CallSequence& sequence, Samples& samples) {
  CallHistogram histogram;
  for (size_t i = 0; i + 1 < sequence.calls.size(); ++i) {
    histogram.Add(sequence.calls[i].call);
    const IssuedCall& next = sequence.calls[i + 1];
    if (i % kStride != 0) continue;
    const std::vector<uint8_t> features = histogram.Features();
    const auto collective = static_cast<size_t>(next.call.collective);
    if (collective < kTunableCollectives)
      AddRow(features, static_cast<int>(next.labelled_role) - 1, samples.roles[collective]);
    AddRow(features, static_cast<int>(next.labelled_phase) - 1, samples.phase);
    if (next.labelled_stage != ZeroStage::kUnknown)
      AddRow(features, static_cast<int>(next.labelled_stage), samples.stage);
  }
}

}  // namespace

Histogram RelativeHistogram(const std::deque<CollectiveCall>& window) {
  int largest = 0;
  // Number of calls by collective and octave.
  std::map<std::pair<Collective, int>, uint32_t> counts;
  for (const CollectiveCall& call : window) {
    ++counts[{call.collective, Octave(call.bytes)}];
    largest = std::max(largest, Octave(call.bytes));
  }
  Histogram histogram{};
  for (const auto& [size, count] : counts) {
    const int below = std::min(largest - size.second, kHistogramOctaves - 1);
    histogram[HistogramRow(size.first) * kHistogramOctaves + static_cast<size_t>(below)] +=
        static_cast<float>(count) / static_cast<float>(window.size());
  }
  return histogram;
}

void CallHistogram::Add(const CollectiveCall& call) {
  window_.push_back(call);
  if (window_.size() > kWindow) window_.pop_front();
  largest_ = std::max(largest_, call.bytes);
}

std::vector<uint8_t> CallHistogram::Features() const {
  std::vector<uint8_t> features;
  features.reserve(kWidth);
  for (const float share : RelativeHistogram(window_)) features.push_back(StepOf(share));
  const CollectiveCall& last = window_.back();
  for (size_t row = 0; row < kHistogramRows; ++row)
    features.push_back(HistogramRow(last.collective) == row ? 1 : 0);
  const CollectiveCall& before = window_.size() > 1 ? window_[window_.size() - 2] : last;
  const int change = Octave(last.bytes) - Octave(before.bytes);
  features.push_back(
      static_cast<uint8_t>(std::min(Octave(largest_) - Octave(last.bytes), kFeatureSteps - 1)));
  features.push_back(static_cast<uint8_t>(std::clamp(change + 8, 0, kFeatureSteps - 1)));
  features.push_back(last.bytes == before.bytes ? 1 : 0);
  features.push_back(last.bytes <= kTinyBytes ? 1 : 0);
  return features;
}

StructureForests TrainForests(const std::vector<CallSequence>& sequences, std::mt19937_64& random) {
  Samples samples;
  for (const CallSequence& sequence : sequences) AddSequence(sequence, samples);
  StructureForests forests;
  for (const ForestSamples& role : samples.roles) forests.roles.emplace_back(role, ForestSettings{}, random);
  forests.phase = std::make_unique<RandomForest>(samples.phase, ForestSettings{}, random);
  forests.stage = std::make_unique<RandomForest>(samples.stage, ForestSettings{}, random);
  return forests;
}

const RecognisedStructure& ForestRecogniser::Step(const CollectiveCall& call) {
  histogram_.Add(call);
  const std::vector<uint8_t> features = histogram_.Features();
  for (size_t c = 0; c < kTunableCollectives; ++c)
    recognised_.next_role[c] = static_cast<Role>(forests_->roles[c].Classify(features) + 1);
  recognised_.phase = static_cast<Phase>(forests_->phase->Classify(features) + 1);
  recognised_.stage = static_cast<ZeroStage>(forests_->stage->Classify(features));
  return recognised_;
}

StructureAccuracy JudgeForests(const StructureForests& forests, const std::vector<CallSequence>& sequences) {
  const auto make = [&] {
    return std::make_unique<RecogniserOf<ForestRecogniser>>(ForestRecogniser(forests));
  };
  return JudgeRecogniser("histogram + forest", make, sequences);
}

}  // namespace dynamiccl::agents
