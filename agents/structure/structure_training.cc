// SPDX-License-Identifier: Apache-2.0
// Truncated backpropagation through time with Adam. Each slot of the batch processes its own sequence stretch
// by stretch. When the sequence ends, another one begins in the slot from an empty state.
#include "agents/structure/structure_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/utils/clip_grad.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "agents/learnt_data.h"
#include "agents/repeatable_math.h"
#include "agents/structure/bounded_lstm.h"
#include "src/base/clock.h"
#include "src/policy/structure_layout.h"

namespace dynamiccl::agents {
namespace {

// The largest norm of the gradients: those of an LSTM explode occasionally, and clipping the norm bounds the
// step (Pascanu et al., ICML 2013).
constexpr double kGradientNorm = 1.0;
// A forget gate that is open at the start keeps the information of the first calls (Jozefowicz et al. 2015).
constexpr double kForgetBias = 1.0;
// The largest cell that the integers can hold (docs/formats/policy_file.md, arithmetic). A cell that counts
// calls would exceed it, and a network trained without the bound would rely on counts that never occur in a
// job.
constexpr double kLargestCell = 32767.0 / kTokenOne;
// Amplitude of uniform noise on the gates' sums: eight times the rounding error of the tables of sigmoid and
// tanh (structure_layout.h). A network trained with this noise does not depend on differences too small for
// the integers (docs/results/agents-structure.md).
constexpr double kTableNoise = 4.0 / (1 << kTableFractionBits);
// Weight of the loss for predicting the next call. It is low, because decisions depend on the other answers:
// role, phase and stage.
constexpr double kNextCallWeight = 0.25;

at::Tensor Uniform(at::IntArrayRef sizes, double bound, at::Generator& generator) {
  return at::empty(sizes).uniform_(-bound, bound, generator).requires_grad_(true);
}

FloatStructureNetwork InitialNetwork(at::Generator& generator) {
  const double bound = 1 / std::sqrt(double{kStructureHidden});
  FloatStructureNetwork network;
  network.input_weights = Uniform({kGateRows, kTokenFeatures}, bound, generator);
  network.hidden_weights = Uniform({kGateRows, kStructureHidden}, bound, generator);
  at::Tensor bias = at::zeros({kGateRows});
  bias.narrow(0, kStructureHidden, kStructureHidden).fill_(kForgetBias);
  network.gate_bias = bias.requires_grad_(true);
  network.head_weights = Uniform({kHeadRows, kStructureHidden}, bound, generator);
  network.head_bias = at::zeros({kHeadRows}).requires_grad_(true);
  return network;
}

FloatStructureNetwork CopyForTraining(const FloatStructureNetwork& other) {
  const auto copy = [](const at::Tensor& tensor) { return tensor.detach().clone().requires_grad_(true); };
  return {copy(other.input_weights), copy(other.hidden_weights), copy(other.gate_bias),
          copy(other.head_weights), copy(other.head_bias)};
}

// Mean cross entropy over the targets that are not -1. These targets are selected first, because for most
// calls only one of the five collectives has a target.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor classes = targets.reshape({-1}), told = at::nonzero(classes.ge(0)).squeeze(1);
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}).index_select(0, told),
                                classes.index_select(0, told));
}

at::Tensor Loss(const at::Tensor& logits, const StructureBatch& batch) {
  const auto shape = logits.sizes();
  const at::Tensor roles =
      logits.narrow(-1, 0, kRoleRows).reshape({shape[0], shape[1], kTunableCollectives, kRoleClasses});
  return CrossEntropy(roles, batch.roles) +
         CrossEntropy(logits.narrow(-1, kPhaseRow, kPhaseClasses), batch.phases) +
         CrossEntropy(logits.narrow(-1, kStageRow, kStageClasses), batch.stages) +
         kNextCallWeight *
             (CrossEntropy(logits.narrow(-1, kNextCollectiveRow, kNextCollectiveClasses),
                           batch.next_collectives) +
              CrossEntropy(logits.narrow(-1, kNextSizeRow, kNextSizeClasses), batch.next_sizes));
}

// Pointers to all tensors of a batch, for operations that apply to each of them.
constexpr at::Tensor StructureBatch::*kParts[] = {
    &StructureBatch::tokens,           &StructureBatch::roles,
    &StructureBatch::phases,           &StructureBatch::stages,
    &StructureBatch::next_collectives, &StructureBatch::next_sizes};

// Views of `calls` calls of all sequences, beginning with call `at`.
StructureBatch Narrow(const StructureBatch& whole, int64_t at, int64_t calls) {
  StructureBatch part;
  for (const auto member : kParts) part.*member = (whole.*member).narrow(1, at, calls);
  return part;
}

StructureBatch Concatenate(const std::vector<StructureBatch>& sequences) {
  StructureBatch batch;
  for (const auto member : kParts) {
    std::vector<at::Tensor> parts;
    for (const StructureBatch& each : sequences) parts.push_back(each.*member);
    batch.*member = at::cat(parts);
  }
  return batch;
}

// Exchanges labels among the calls of the sequence, so that each label stays as frequent as before. The stage
// is drawn at random.
void PermuteLabels(CallSequence& sequence, std::mt19937_64& random) {
  std::vector<IssuedCall>& calls = sequence.calls;
  for (size_t i = calls.size(); i > 1; --i) {
    const size_t other = random() % i;
    std::swap(calls[i - 1].labelled_role, calls[other].labelled_role);
    std::swap(calls[i - 1].labelled_phase, calls[other].labelled_phase);
  }
  const auto stage = static_cast<ZeroStage>(random() % kStageClasses);
  for (IssuedCall& issued : calls) issued.labelled_stage = stage;
}

// In a thousand iterations, training begins the sequences of about 25 jobs of every framework and family. It
// could not use more jobs. With few jobs a network memorises their sizes (docs/results/agents-structure.md).
int JobsFor(int iterations) {
  return std::clamp(iterations / 30, 12, 150);
}

JobPlan PlanOf(const StructureTrainingSettings& settings) {
  JobPlan plan = Completed(settings.jobs);
  if (plan.jobs == 0) plan.jobs = JobsFor(settings.iterations);
  return plan;
}

// Supplies the batches of a training. TrainStructure creates one on its stack.
class Sampler {
 public:
  Sampler(const std::vector<CallSequence>& recorded, const StructureTrainingSettings& settings)
      : random_(settings.seed),
        recorded_(recorded),
        generated_(GeneratedSequences(settings, random_)),
        settings_(settings),
        places_(static_cast<size_t>(settings.batch)) {
    for (size_t i = 0; i < generated_.size(); ++i) by_framework_[generated_[i].framework].push_back(i);
  }

  // The next stretch of every sequence of the batch, and the states before it. Where a sequence has ended,
  // another begins from an empty state. `progress` is the share of the iterations that are over.
  struct Stretch {
    StructureBatch batch;
    BoundedLstmState state;
  };
  Stretch Next(const BoundedLstmState& ended, double progress) {
    has_questions_ = settings_.question_every > 0 && progress >= settings_.questions_from;
    std::vector<StructureBatch> parts;
    Stretch next;
    next.state = ended;
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      if (place.at >= place.calls) {
        Refill(i, place);
        next.state.hidden[static_cast<int64_t>(i)].zero_();
        next.state.cells[static_cast<int64_t>(i)].zero_();
      }
      parts.push_back(Narrow(place.whole, place.at, settings_.length));
      place.at += settings_.length;
    }
    next.batch = Concatenate(parts);
    return next;
  }
  const std::vector<CallSequence>& generated() const { return generated_; }

 private:
  // Draws every framework equally often, however many sequences it has.
  const CallSequence& PickGenerated() {
    auto framework = by_framework_.begin();
    std::advance(framework, static_cast<std::ptrdiff_t>(random_() % by_framework_.size()));
    return generated_[framework->second[random_() % framework->second.size()]];
  }

  // A whole sequence of the batch, and how many of its calls the training has used.
  struct Place {
    StructureBatch whole;
    int64_t at = 0;
    int64_t calls = 0;
  };

  void Refill(size_t index, Place& place) {
    CallSequence sequence;
    // A sequence that consists only of scalars may lose all its calls in Reinvent; another one is then drawn.
    while (sequence.calls.empty()) {
      const bool of_recorded = !recorded_.empty() && index % 6 == 0;
      sequence = Varied(of_recorded ? recorded_[random_() % recorded_.size()] : PickGenerated());
    }
    if (settings_.permute_labels) PermuteLabels(sequence, random_);
    if (has_questions_ && random_() % static_cast<uint64_t>(settings_.question_every) == 0)
      sequence = AsQuestions(std::move(sequence));
    place.at = 0;
    place.calls = static_cast<int64_t>(sequence.calls.size());
    const int64_t stretches = (place.calls + settings_.length - 1) / settings_.length;
    place.whole = MakeBatch({std::move(sequence)}, {0}, static_cast<int>(stretches) * settings_.length);
  }

  // Most sequences start at their first call, as jobs do. The others start anywhere, as when a policy is
  // swapped during a job. A third of the sequences stays unchanged, a third gets other sizes, and a third
  // other sizes and collectives.
  CallSequence Varied(const CallSequence& sequence) {
    const size_t begin = random_() % 6 != 0 ? 0 : random_() % (sequence.calls.size() / 2 + 1);
    CallSequence window = Window(sequence, begin, static_cast<size_t>(settings_.most_calls));
    const uint64_t variation = random_() % 3;
    if (variation == 0) return window;
    if (variation == 2) window = Reinvent(std::move(window), random_);
    return Rescale(std::move(window), random_);
  }

  std::mt19937_64 random_;
  const std::vector<CallSequence>& recorded_;
  const std::vector<CallSequence> generated_;
  const StructureTrainingSettings settings_;
  std::map<std::string, std::vector<size_t>> by_framework_;
  std::vector<Place> places_;
  bool has_questions_ = false;  // sequences that begin now may be questions
};

}  // namespace

at::Tensor FloatStructureNetwork::Logits(const at::Tensor& tokens, BoundedLstmState* state,
                                         const at::Tensor& noise) const {
  at::Tensor inputs = RepeatableLinear(tokens, input_weights, gate_bias);
  if (noise.defined()) inputs = inputs + noise;
  return RepeatableLinear(BoundedLstm(inputs, hidden_weights, kLargestCell, state), head_weights, head_bias);
}

std::vector<at::Tensor> FloatStructureNetwork::parameters() const {
  return {input_weights, hidden_weights, gate_bias, head_weights, head_bias};
}

JobPlan Completed(JobPlan plan) {
  if (plan.frameworks.empty()) {
    for (const FrameworkGenerator* generator : AllFrameworkGenerators())
      plan.frameworks.push_back(generator->name());
  }
  if (plan.families.empty()) plan.families.assign(AllFamilies().begin(), AllFamilies().end());
  return plan;
}

std::vector<CallSequence> GeneratedSequences(const StructureTrainingSettings& settings,
                                             std::mt19937_64& random) {
  return RandomJobs(PlanOf(settings), random);
}

FloatStructureNetwork TrainStructure(const std::vector<CallSequence>& recorded,
                                     const StructureTrainingSettings& settings,
                                     StructureTrainingReport* report) {
  const int64_t start = MonotonicNanoseconds();
  at::Generator generator = at::detail::createCPUGenerator(settings.seed);
  FloatStructureNetwork network =
      settings.begin == nullptr ? InitialNetwork(generator) : CopyForTraining(*settings.begin);
  Sampler sampler(recorded, settings);
  Adam adam(network.parameters(), settings.learning_rate);
  BoundedLstmState state{at::zeros({settings.batch, kStructureHidden}),
                         at::zeros({settings.batch, kStructureHidden})};
  const int tail = std::max(settings.iterations / 10, 1);
  double tail_loss = 0;
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    const double progress = static_cast<double>(iteration) / settings.iterations;
    Sampler::Stretch stretch = sampler.Next(state, progress);
    state = std::move(stretch.state);
    adam.ZeroGradients();
    const at::Tensor noise = at::empty({settings.batch, settings.length, kGateRows})
                                 .uniform_(-kTableNoise, kTableNoise, generator);
    const at::Tensor loss = Loss(network.Logits(stretch.batch.tokens, &state, noise), stretch.batch);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(network.parameters(), kGradientNorm);
    adam.Step(progress);
    if (iteration >= settings.iterations - tail) tail_loss += loss.item<double>() / tail;
    if (settings.observer)
      settings.observer({iteration + 1, settings.iterations, recorded.size() + sampler.generated().size()});
  }
  *report = {static_cast<double>(MonotonicNanoseconds() - start) * 1e-9, tail_loss,
             sampler.generated().size(), ChecksumOf(sampler.generated())};
  return network;
}

}  // namespace dynamiccl::agents
