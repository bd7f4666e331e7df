// SPDX-License-Identifier: Apache-2.0
// Training on windows of runs, and the detector around the trained network. The LSTM's equations are those of
// structure/bounded_lstm.h without the bound.
#include "studies/agents/timing/recurrent_head.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace dynamiccl::agents {
namespace {

// The largest norm of the gradients, which bounds an occasional explosion.
constexpr double kGradientNorm = 1.0;
// Number of rows of all four gates.
constexpr int kGates = 4 * kHeadHidden;
// Number of calls after an event at which nobody could recognise the event yet. They carry no label.
constexpr size_t kUnlabelled = 4;
// Number of calls after an event that carry its label. After them, the references have followed the change.
constexpr size_t kLabelled = 300;
// Weight of the newest call in the smoothed log odds.
constexpr double kSmoothing = 0.1;
// Log odds of a single call are clamped to this size.
constexpr double kMaxLogOdds = 10;

at::Tensor Uniform(at::IntArrayRef sizes, double bound, at::Generator& generator) {
  return at::empty(sizes).uniform_(-bound, bound, generator).requires_grad_(true);
}

RecurrentHead InitialHead(uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const double bound = 1 / std::sqrt(double{kHeadHidden});
  RecurrentHead head;
  head.input_weights = Uniform({kGates, kHeadInputs}, bound, generator);
  head.hidden_weights = Uniform({kGates, kHeadHidden}, bound, generator);
  at::Tensor bias = at::zeros({kGates});
  bias.narrow(0, kHeadHidden, kHeadHidden).fill_(1);  // forget gates start open
  head.gate_bias = bias.requires_grad_(true);
  head.head_weights = Uniform({kHeadClasses, kHeadHidden}, bound, generator);
  head.head_bias = at::zeros({kHeadClasses}).requires_grad_(true);
  return head;
}

int64_t ClassOf(TimingEvent event) {
  switch (event) {
    case TimingEvent::kDegraded:
    case TimingEvent::kOneLink:
      return static_cast<int64_t>(Regime::kDegradedLink);
    case TimingEvent::kCongested:
      return static_cast<int64_t>(Regime::kCongested);
    case TimingEvent::kStraggler:
      return static_cast<int64_t>(Regime::kStraggler);
    default:
      return static_cast<int64_t>(Regime::kNormal);
  }
}

// Inputs and labels of those calls of a run that have residuals.
struct LabelledInputs {
  std::vector<HeadInput> inputs;
  // Regime of each call; -1 means that the call does not count.
  std::vector<int64_t> labels;
  size_t changed = 0;
};

LabelledInputs InputsOf(const TimingRun& run) {
  LabelledInputs labelled;
  CallResiduals residuals;
  for (size_t i = 0; i < run.calls.size(); ++i) {
    const auto residual = residuals.Take(run.calls[i]);
    if (!residual) continue;
    if (i < run.changed) labelled.changed = labelled.inputs.size() + 1;
    labelled.inputs.push_back(InputOf(*residual));
    int64_t label = 0;
    if (i >= run.changed) label = ClassOf(run.event);
    if (i >= run.changed && (i < run.changed + kUnlabelled || i > run.changed + kLabelled)) label = -1;
    labelled.labels.push_back(label);
  }
  return labelled;
}

// Supplies the batches of a training.
class Windows {
 public:
  Windows(const std::vector<TimingRun>& runs, const HeadTraining& training)
      : random_(training.seed), training_(training) {
    for (const TimingRun& run : runs) {
      if (run.event == TimingEvent::kSizes) continue;
      LabelledInputs labelled = InputsOf(run);
      if (labelled.inputs.size() > static_cast<size_t>(training.length))
        (run.quiet() ? quiet_ : changed_).push_back(std::move(labelled));
    }
  }

  bool empty() const { return quiet_.empty() || changed_.empty(); }

  // Inputs [batch, length, kHeadInputs] and labels [batch, length] of a batch, two fifths of which is quiet.
  std::pair<at::Tensor, at::Tensor> Next() {
    std::vector<float> inputs;
    std::vector<int64_t> labels;
    for (int i = 0; i < training_.batch; ++i) Append(i % 5 < 2, inputs, labels);
    return {at::from_blob(inputs.data(), {training_.batch, training_.length, kHeadInputs}).clone(),
            at::from_blob(labels.data(), {training_.batch, training_.length}, at::kLong).clone()};
  }

 private:
  void Append(bool quiet, std::vector<float>& inputs, std::vector<int64_t>& labels) {
    const auto& runs = quiet ? quiet_ : changed_;
    const LabelledInputs& run = runs[random_() % runs.size()];
    const auto length = static_cast<size_t>(training_.length);
    size_t begin = random_() % (run.inputs.size() - length);
    // Most windows of a changed run contain the event.
    if (!quiet && random_() % 4 != 0)
      begin = std::min(run.inputs.size() - length, run.changed - std::min(run.changed, random_() % length));
    for (size_t i = begin; i < begin + length; ++i) {
      inputs.insert(inputs.end(), run.inputs[i].begin(), run.inputs[i].end());
      labels.push_back(run.labels[i]);
    }
  }

  std::mt19937_64 random_;
  const HeadTraining training_;
  std::vector<LabelledInputs> quiet_;
  std::vector<LabelledInputs> changed_;
};

std::vector<float> FloatsOf(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

float Sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

// The network as a change detector.
class Recurrent : public ChangeDetector {
 public:
  Recurrent(const HeadState& state, double threshold) : state_(state), threshold_(threshold) {}

  std::optional<Regime> Take(const TimedCall& call) override {
    const auto residual = residuals_.Take(call);
    if (!residual) return std::nullopt;
    const auto shares = state_.Step(InputOf(*residual));
    const double odds = std::log((1 - shares[0] + 1e-9) / (shares[0] + 1e-9));
    smoothed_ += kSmoothing * (std::clamp(odds, -kMaxLogOdds, kMaxLogOdds) - smoothed_);
    for (size_t i = 0; i < shares.size(); ++i) regimes_[i] += kSmoothing * (shares[i] - regimes_[i]);
    if (smoothed_ + kMaxLogOdds < threshold_) return std::nullopt;
    const auto likeliest = std::max_element(regimes_.begin() + 1, regimes_.end()) - regimes_.begin();
    Forget();
    return static_cast<Regime>(likeliest);
  }

 private:
  void Forget() {
    residuals_.Forget();
    state_.Forget();
    smoothed_ = -kMaxLogOdds;
    regimes_ = {};
  }

  CallResiduals residuals_;
  HeadState state_;
  double threshold_;
  double smoothed_ = -kMaxLogOdds;
  std::array<double, kHeadClasses> regimes_{};
};

// The kind of Recurrent, for one trained head.
class RecurrentDetectors : public DetectorKind {
 public:
  explicit RecurrentDetectors(const RecurrentHead& head) : state_(head) {}
  std::string name() const override { return "LSTM head"; }
  std::unique_ptr<ChangeDetector> Make(double threshold) const override {
    return std::make_unique<Recurrent>(state_, threshold);
  }
  double usual_threshold() const override { return 12; }
  bool tells_regimes() const override { return true; }
  bool has_curve() const override { return false; }

 private:
  HeadState state_;
};

}  // namespace

at::Tensor RecurrentHead::Logits(const at::Tensor& inputs) const {
  const at::Tensor state = at::zeros({1, inputs.size(0), kHeadHidden});
  const std::vector<at::Tensor> weights = {input_weights, hidden_weights, gate_bias,
                                           at::zeros_like(gate_bias)};
  const auto [output, hidden, cell] =
      at::lstm(inputs, {state, state}, weights, /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0.0,
               /*train=*/true, /*bidirectional=*/false, /*batch_first=*/true);
  return at::linear(output, head_weights, head_bias);
}

std::vector<at::Tensor> RecurrentHead::parameters() const {
  return {input_weights, hidden_weights, gate_bias, head_weights, head_bias};
}

HeadInput InputOf(const CallResidual& residual) {
  const auto within = [](double x, double most) { return static_cast<float>(std::clamp(x, -most, most)); };
  return {within(residual.transfer / residual.transfer_unit / 3, 2),
          within(2 * residual.transfer, 2),
          within(residual.skew / residual.skew_unit / 3, 2),
          within(2 * residual.skew, 2),
          within(3 * residual.transfer_unit, 2),
          within(3 * residual.skew_unit, 2)};
}

RecurrentHead TrainHead(const std::vector<TimingRun>& runs, const HeadTraining& training) {
  RecurrentHead head = InitialHead(training.seed);
  Windows windows(runs, training);
  if (windows.empty()) return head;
  torch::optim::Adam adam(head.parameters(), torch::optim::AdamOptions(training.learning_rate));
  for (int iteration = 0; iteration < training.iterations; ++iteration) {
    const double progress = static_cast<double>(iteration) / training.iterations;
    static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options())
        .lr(training.learning_rate * 0.5 * (1 + std::cos(progress * 3.14159265358979)));
    const auto [inputs, labels] = windows.Next();
    adam.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(head.Logits(inputs).reshape({-1, kHeadClasses}),
                                                   labels.reshape({-1}), {}, at::Reduction::Mean, -1);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(head.parameters(), kGradientNorm);
    adam.step();
  }
  return head;
}

HeadState::HeadState(const RecurrentHead& head)
    : weights_(std::make_shared<Weights>(Weights{FloatsOf(head.input_weights), FloatsOf(head.hidden_weights),
                                                 FloatsOf(head.gate_bias), FloatsOf(head.head_weights),
                                                 FloatsOf(head.head_bias)})) {}

void HeadState::Forget() {
  hidden_ = {};
  cell_ = {};
}

std::array<double, kHeadClasses> HeadState::Step(const HeadInput& input) {
  const Weights& w = *weights_;
  std::array<float, kGates> gates{};
  for (size_t row = 0; row < gates.size(); ++row) {
    float sum = w.bias[row];
    for (size_t i = 0; i < input.size(); ++i) sum += w.input[row * kHeadInputs + i] * input[i];
    for (size_t i = 0; i < hidden_.size(); ++i) sum += w.hidden[row * kHeadHidden + i] * hidden_[i];
    gates[row] = sum;
  }
  for (size_t i = 0; i < hidden_.size(); ++i) {
    cell_[i] = Sigmoid(gates[kHeadHidden + i]) * cell_[i] +
               Sigmoid(gates[i]) * std::tanh(gates[2 * kHeadHidden + i]);
    hidden_[i] = Sigmoid(gates[3 * kHeadHidden + i]) * std::tanh(cell_[i]);
  }
  std::array<double, kHeadClasses> shares{};
  double total = 0;
  for (size_t row = 0; row < shares.size(); ++row) {
    double sum = w.head_bias[row];
    for (size_t i = 0; i < hidden_.size(); ++i) sum += w.head[row * kHeadHidden + i] * hidden_[i];
    total += shares[row] = std::exp(sum);
  }
  for (double& share : shares) share /= total;
  return shares;
}

std::unique_ptr<DetectorKind> RecurrentKind(const RecurrentHead& head) {
  return std::make_unique<RecurrentDetectors>(head);
}

}  // namespace dynamiccl::agents
