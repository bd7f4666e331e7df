// SPDX-License-Identifier: Apache-2.0
#include "agents/trigger/trigger_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <map>

#include "agents/trigger/bounded_lstm.h"
#include "src/base/clock.h"
#include "src/policy/structure_layout.h"

namespace dynamiccl::agents {
namespace {

// Gradients of an LSTM explode now and then; torch's usual bound.
constexpr double kGradientNorm = 1.0;
// A forget gate that starts open keeps what the first calls said (Jozefowicz et al. 2015).
constexpr double kForgetBias = 1.0;
// What the integers hold (docs/formats/policy_file.md, arithmetic). A cell that counts calls grows beyond it;
// a network that learns without the bound relies on counts that no job would ever see.
constexpr double kLargestCell = 32767.0 / kTokenOne;
// The next call is predicted beside what decisions need, not instead of it.
constexpr double kNextCallWeight = 0.25;

at::Tensor Uniform(at::IntArrayRef sizes, double bound, at::Generator& generator) {
  return at::empty(sizes).uniform_(-bound, bound, generator).requires_grad_(true);
}

TriggerNetwork InitialNetwork(uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const double bound = 1 / std::sqrt(double{kStructureHidden});
  TriggerNetwork network;
  network.input_weights = Uniform({kGateRows, kTokenFeatures}, bound, generator);
  network.hidden_weights = Uniform({kGateRows, kStructureHidden}, bound, generator);
  at::Tensor bias = at::zeros({kGateRows});
  bias.narrow(0, kStructureHidden, kStructureHidden).fill_(kForgetBias);
  network.gate_bias = bias.requires_grad_(true);
  network.head_weights = Uniform({kHeadRows, kStructureHidden}, bound, generator);
  network.head_bias = at::zeros({kHeadRows}).requires_grad_(true);
  return network;
}

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), targets.reshape({-1}), {},
                                at::Reduction::Mean,
                                /*ignore_index=*/-1);
}

at::Tensor Loss(const at::Tensor& logits, const TriggerBatch& batch) {
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

// Labels of the same sequence's other calls, so that their shares stay.
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

class Sampler {
 public:
  Sampler(const std::vector<CallSequence>& recorded, const TriggerTrainingSettings& settings)
      : random_(settings.seed),
        recorded_(recorded),
        generated_(RandomJobs(Completed(settings.jobs), random_)),
        settings_(settings) {
    for (size_t i = 0; i < generated_.size(); ++i) by_framework_[generated_[i].framework].push_back(i);
  }

  TriggerBatch Next() {
    std::vector<CallSequence> sequences;
    for (int i = 0; i < settings_.batch; ++i) {
      sequences.push_back(!recorded_.empty() && i % 6 == 0 ? Varied(recorded_[random_() % recorded_.size()])
                                                           : Varied(PickGenerated()));
      if (settings_.permute_labels) PermuteLabels(sequences.back(), random_);
    }
    const std::vector<size_t> begins(sequences.size());
    return MakeBatch(sequences, begins, settings_.length);
  }
  size_t generated() const { return generated_.size(); }

 private:
  // Every framework equally often.
  const CallSequence& PickGenerated() {
    auto framework = by_framework_.begin();
    std::advance(framework, static_cast<std::ptrdiff_t>(random_() % by_framework_.size()));
    return generated_[framework->second[random_() % framework->second.size()]];
  }

  // Two thirds from their first call, as jobs begin; the others from anywhere. A third as it is, a third in
  // other sizes, a third in other collectives too.
  CallSequence Varied(const CallSequence& sequence) {
    const size_t begin = random_() % 3 != 0 ? 0 : random_() % (sequence.calls.size() / 2 + 1);
    CallSequence window = Window(sequence, begin, static_cast<size_t>(settings_.length));
    const uint64_t variation = random_() % 3;
    if (variation == 0) return window;
    if (variation == 2) window = Reinvent(std::move(window), random_);
    return Rescale(std::move(window), random_);
  }

  std::mt19937_64 random_;
  const std::vector<CallSequence>& recorded_;
  const std::vector<CallSequence> generated_;
  const TriggerTrainingSettings settings_;
  std::map<std::string, std::vector<size_t>> by_framework_;
};

}  // namespace

at::Tensor TriggerNetwork::Logits(const at::Tensor& tokens) const {
  const at::Tensor inputs = at::linear(tokens, input_weights, gate_bias);
  return at::linear(BoundedLstm(inputs, hidden_weights, kLargestCell), head_weights, head_bias);
}

std::vector<at::Tensor> TriggerNetwork::parameters() const {
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

TriggerNetwork TrainTrigger(const std::vector<CallSequence>& recorded,
                            const TriggerTrainingSettings& settings, TriggerTrainingReport* report) {
  const int64_t start = MonotonicNanoseconds();
  TriggerNetwork network = InitialNetwork(settings.seed);
  Sampler sampler(recorded, settings);
  torch::optim::Adam adam(network.parameters(), torch::optim::AdamOptions(settings.learning_rate));
  const int tail = std::max(settings.iterations / 10, 1);
  double tail_loss = 0;
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    // Cosine decay to zero.
    const double progress = static_cast<double>(iteration) / settings.iterations;
    static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options())
        .lr(settings.learning_rate * 0.5 * (1 + std::cos(progress * 3.14159265358979)));
    const TriggerBatch batch = sampler.Next();
    adam.zero_grad();
    const at::Tensor loss = Loss(network.Logits(batch.tokens), batch);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(network.parameters(), kGradientNorm);
    adam.step();
    if (iteration >= settings.iterations - tail) tail_loss += loss.item<double>() / tail;
  }
  *report = {static_cast<double>(MonotonicNanoseconds() - start) * 1e-9, tail_loss, sampler.generated()};
  return network;
}

}  // namespace dynamiccl::agents
