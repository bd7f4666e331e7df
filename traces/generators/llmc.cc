// SPDX-License-Identifier: Apache-2.0
// llm.c: GPT-2 with one communicator. A step is
// - in the last micro-step, for each layer one group of twelve ReduceScatters (stage 0: AllReduces)
// - AllReduce of the loss
// - a group of four: word embedding, position embedding, last norm's weight and bias
// - stage 1: AllReduce of the norm, then AllGathers, with one group for the tensors of a kind in all layers
#include <array>
#include <vector>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

constexpr std::array kLlmcSettings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "bfloat16", "floatX: parameters and gradients"},
    GeneratorSetting{"stage", SettingKind::kChoice, "1", "ZeRO stage (-z)", 1, "0,1"},
};

// The vocabulary is padded to a multiple of this many rows, as padded_vocab_size in the export of
// train_gpt2.py.
constexpr int64_t kVocabularyAlignment = 128;

class Llmc : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "llmc"; }
  std::string_view sentence() const override { return "llm.c's GPT-2 trainer, ZeRO stage 0 or 1"; }
  std::string_view source() const override { return "llm.c f1e2ace: train_gpt2.cu, llmc/zero.cuh"; }
  std::span<const GeneratorSetting> settings() const override { return kLlmcSettings; }
  ZeroStage Stage(const GeneratorInput& input) const override {
    return input.settings.Choice("stage") == "1" ? ZeroStage::kStage1 : ZeroStage::kStage0;
  }
  Status Check(const GeneratorInput& input) const override;
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Elements of each tensor: the two embeddings, the width of the last norm, and the twelve tensors of a layer.
struct Tensors {
  int64_t word_embedding, position_embedding, width;
  std::array<int64_t, 12> layer;
};

// A layer's twelve tensors in the order of llm.c: two norms, attention, feed-forward part, with their biases.
Tensors TensorsOf(const Transformer& t) {
  const int64_t c = t.hidden;
  return {RoundUp(t.vocabulary, kVocabularyAlignment) * c,
          t.sequence * c,
          c,
          {c, c, 3 * c * c, 3 * c, c * c, c, c, c, 4 * c * c, 4 * c, 4 * c * c, c}};
}

// llm.c trains only GPT-2, and shards only tensors whose size divides by the ranks.
Status Llmc::Check(const GeneratorInput& input) const {
  DYNAMICCL_CHECK_OK(FrameworkGenerator::Check(input));
  if (input.model.name != "gpt" || !input.model.transformer->tied_head) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "llmc: it trains GPT-2 with a tied head only"),
                    "take --model gpt:tied_head=true");
  }
  const Tensors tensors = TensorsOf(*input.model.transformer);
  const bool divides = tensors.word_embedding % input.world.data == 0 &&
                       tensors.position_embedding % input.world.data == 0 &&
                       tensors.width % input.world.data == 0;
  if (Stage(input) == ZeroStage::kStage0 || divides) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "llmc: hidden {} does not divide by {} ranks", tensors.width,
                input.world.data),
      "llm.c would print a line and train without sharding: ask for stage=0, or take another hidden");
}

// Writes the operations of one step.
class StepWriter {
 public:
  StepWriter(const GeneratorInput& input, OperationList& list)
      : list_(list),
        layers_(input.model.transformer->layers),
        tensors_(TensorsOf(*input.model.transformer)),
        type_(input.settings.Type("dtype")),
        sharded_(input.settings.Choice("stage") == "1") {}

  void Run() {
    list_.SetPhase(Phase::kBackward);
    for (int64_t layer = 0; layer < layers_; ++layer) Reduce({tensors_.layer.begin(), tensors_.layer.end()});
    list_.AllReduce(1, DataType::kFloat32, ReduceOp::kAvg, Role::kScalar);  // the loss
    Reduce({tensors_.word_embedding, tensors_.position_embedding, tensors_.width, tensors_.width});
    list_.SetPhase(Phase::kOptimizer);
    if (!sharded_) return;
    list_.AllReduce(1, DataType::kFloat32, ReduceOp::kSum, Role::kScalar);  // the norm
    Gather(tensors_.word_embedding, 1);
    Gather(tensors_.position_embedding, 1);
    for (const int64_t elements : tensors_.layer) Gather(elements, layers_);
    Gather(tensors_.width, 1);
    Gather(tensors_.width, 1);
  }

 private:
  // Sends the gradients of some tensors as one group.
  void Reduce(const std::vector<int64_t>& group) {
    list_.BeginGroup();
    for (const int64_t elements : group) {
      if (sharded_)
        list_.ReduceScatter(elements, type_, ReduceOp::kAvg, Role::kGradientReduce);
      else
        list_.AllReduce(elements, type_, ReduceOp::kAvg, Role::kGradientReduce);
    }
    list_.EndGroup();
  }
  // Gathers `copies` tensors of `elements` each as one group.
  void Gather(int64_t elements, int64_t copies) {
    list_.BeginGroup();
    for (int64_t copy = 0; copy < copies; ++copy) list_.AllGather(elements, type_, Role::kPostStepGather);
    list_.EndGroup();
  }

  OperationList& list_;
  const int64_t layers_;
  const Tensors tensors_;
  const DataType type_;
  const bool sharded_;
};

void Llmc::Step(const GeneratorInput& input, int, OperationList& list) const {
  StepWriter(input, list).Run();
}

}  // namespace

const FrameworkGenerator& LlmcGenerator() {
  static const Llmc generator;
  return generator;
}

}  // namespace dynamiccl
