// SPDX-License-Identifier: Apache-2.0
// Quantises the structure LSTM and compares the integers with the float network. As in config_export.cc, the
// scale of a layer shrinks while a sum could overflow.
#include "agents/structure/structure_export.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "agents/quantisation.h"
#include "src/policy/policy_checks.h"
#include "src/policy/policy_layout.h"
#include "src/policy/structure_network.h"

namespace dynamiccl::agents {
namespace {

// log(4) with 12 fraction bits: the best class must be four times as likely as the second. Calibration
// replaces this value.
constexpr int32_t kMargin = 5678;
// A new stage is reported when it has won for this many calls in a row: more calls than a small model makes
// before its first optimizer step.
constexpr int32_t kHoldCalls = 8;
// With 14 fraction bits, weights below 2 fit into 16 bits. FractionBits chooses fewer bits for larger
// weights.
constexpr int kMaxFractionBits = 14;
// A threshold that no call's surprise reaches. Calibration replaces this value.
constexpr int32_t kNeverSurprised = 1 << 16;
// After this many calls without a new shape, a call of a new shape counts as a change of the job. Inside a
// job's first step, fewer calls than this lie between two new shapes.
constexpr int32_t kSettledCalls = 256;

// Fills both tables with fixed-point values at multiples of 2^-kTableFractionBits. Values of the sigmoid have
// kGateOneBits fraction bits, those of tanh have kTokenFractionBits (1.0 is kTokenOne).
void FillTables(PolicyTensors& t) {
  for (int i = 0; i < kTableEntries; ++i) {
    const double x = (i - kTableEntries / 2) / double{1 << kTableFractionBits};
    const double sigmoid = std::nearbyint(std::ldexp(1 / (1 + std::exp(-x)), kGateOneBits));
    t.sigmoid_table[i] = static_cast<int16_t>(std::min(sigmoid, 32767.0));
    t.tanh_table[i] = static_cast<int16_t>(std::nearbyint(kTokenOne * std::tanh(x)));
  }
}

// Index of the largest of logits[first, first + count).
int64_t Best(const at::Tensor& logits, int64_t first, int64_t count) {
  return logits.narrow(-1, first, count).argmax(-1).item<int64_t>();
}

// Counts the calls for which the float and the integer network give the same answer in one head.
struct Tally {
  int64_t same = 0, all = 0;
  void Add(bool equal) { same += equal, ++all; }
  double share() const { return all == 0 ? 1.0 : static_cast<double>(same) / static_cast<double>(all); }
};

// The agreement of both networks for each of the three answers.
struct Tallies {
  Tally role, phase, stage;
};

void CompareSequence(const at::Tensor& real, const at::Tensor& integer, const StructureBatch& batch,
                     int64_t sequence, Tallies& tallies) {
  const at::Tensor roles = batch.roles[sequence], phases = batch.phases[sequence],
                   stages = batch.stages[sequence];
  for (int64_t call = 0; call < real.size(0); ++call) {
    const at::Tensor a = real[call], b = integer[call];
    const auto same = [&](int64_t first, int64_t count) {
      return Best(a, first, count) == Best(b, first, count);
    };
    for (int64_t c = 0; c < kTunableCollectives; ++c) {
      if (roles[call][c].item<int64_t>() >= 0) tallies.role.Add(same(c * kRoleClasses, kRoleClasses));
    }
    if (phases[call].item<int64_t>() >= 0) tallies.phase.Add(same(kPhaseRow, kPhaseClasses));
    if (stages[call].item<int64_t>() >= 0) tallies.stage.Add(same(kStageRow, kStageClasses));
  }
}

// Returns the integer network's logits, int32 [length, kHeadRows], with cells rounded after each call as in a
// job. If there are fewer than `length` calls, empty tokens follow after the last call.
at::Tensor IntegerLogits(const PolicyTensors& tensors, const std::vector<IssuedCall>& calls, int64_t length) {
  at::Tensor logits = at::empty({length, kHeadRows}, at::kInt);
  const StructureNetwork network(tensors);
  CallTokenizer tokenizer;
  LstmState state;
  for (int64_t call = 0; call < length; ++call) {
    const bool there = static_cast<size_t>(call) < calls.size();
    network.StepOverCall(there ? tokenizer.Next(calls[static_cast<size_t>(call)].call) : CallToken{}, state);
    const StructureLogits row = network.Logits(state);
    std::copy(row.begin(), row.end(), logits.data_ptr<int32_t>() + call * kHeadRows);
  }
  return logits;
}

}  // namespace

Status ExportStructure(const FloatStructureNetwork& network, PolicyTensors& t) {
  const at::Tensor gates = at::cat({network.input_weights, network.hidden_weights}, 1);
  FillTables(t);
  t.structure = {FractionBits(gates, kMaxFractionBits),
                 FractionBits(network.head_weights, kMaxFractionBits),
                 kMargin,
                 kMargin,
                 kMargin,
                 kHoldCalls,
                 kNeverSurprised,
                 kSettledCalls};
  for (; t.structure.gate_fraction_bits >= 1; --t.structure.gate_fraction_bits) {
    Quantise(gates, t.structure.gate_fraction_bits, Flat(t.gate_weights));
    Quantise(network.gate_bias, kTokenFractionBits + t.structure.gate_fraction_bits, Flat(t.gate_bias));
    Quantise(network.head_weights, t.structure.head_fraction_bits, Flat(t.head_weights));
    Quantise(network.head_bias, kTokenFractionBits + t.structure.head_fraction_bits, Flat(t.head_bias));
    if (!SumsFit(t, Agent::kStructure)) {
      t.structure.head_fraction_bits = std::max(t.structure.head_fraction_bits - 1, 1);
      continue;
    }
    return {};
  }
  return MakeError(ErrorKind::kInternal,
                   "the structure agent's weights are too large for 16 bits; train with another --seed");
}

FloatStructureNetwork StructureNetworkOf(const PolicyTensors& t) {
  const int gate_bits = t.structure.gate_fraction_bits, head_bits = t.structure.head_fraction_bits;
  const at::Tensor gates =
      Dequantised(t.gate_weights, {kGateRows, kTokenFeatures + kStructureHidden}, gate_bits);
  FloatStructureNetwork network;
  network.input_weights = gates.narrow(1, 0, kTokenFeatures).contiguous();
  network.hidden_weights = gates.narrow(1, kTokenFeatures, kStructureHidden).contiguous();
  network.gate_bias = Dequantised(t.gate_bias, {kGateRows}, kTokenFractionBits + gate_bits);
  network.head_weights = Dequantised(t.head_weights, {kHeadRows, kStructureHidden}, head_bits);
  network.head_bias = Dequantised(t.head_bias, {kHeadRows}, kTokenFractionBits + head_bits);
  return network;
}

void FillGoldenTokens(const std::vector<CallSequence>& sequences, PolicyTensors& t) {
  for (size_t i = 0; i < kGoldenPerAgent; i += kGoldenSequence) {
    const std::vector<IssuedCall>& calls = sequences[(i / kGoldenSequence) % sequences.size()].calls;
    CallTokenizer tokenizer;
    for (size_t j = 0; j < kGoldenSequence; ++j) {
      const CallToken token = tokenizer.Next(calls[j % calls.size()].call);
      std::copy(token.begin(), token.end(), t.golden_tokens[i + j]);
    }
  }
}

StructureAgreement CompareStructure(const FloatStructureNetwork& network, const PolicyTensors& tensors,
                                    const std::vector<CallSequence>& sequences, int length) {
  const c10::AutoGradMode no_gradients(false);
  const StructureBatch batch = MakeBatch(sequences, std::vector<size_t>(sequences.size()), length);
  const at::Tensor real = network.Logits(batch.tokens);
  Tallies tallies;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    CompareSequence(real[index], IntegerLogits(tensors, sequences[i].calls, length), batch, index, tallies);
  }
  return {tallies.role.share(), tallies.phase.share(), tallies.stage.share()};
}

}  // namespace dynamiccl::agents
