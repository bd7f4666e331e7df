// SPDX-License-Identifier: Apache-2.0
// Shapes of known models, with parameters in order of registration. Names follow their public
// implementations: GPT-2 and BERT (Hugging Face transformers), LLaMA (facebookresearch/llama), ResNet
// (torchvision).
#include <array>

#include "traces/generators/model_shape.h"

namespace dynamiccl {
namespace {

// Largest values of settings. They are far above those of models in use, and their products fit into 64 bits.
constexpr int64_t kMaxLayers = 4096, kMaxWidth = 1 << 20, kMaxRows = 1 << 24;

// Returns a setting whose value is a size, with the largest permitted value.
constexpr GeneratorSetting Size(std::string_view name, std::string_view standard, std::string_view sentence,
                                int64_t most) {
  return {name, SettingKind::kInteger, standard, sentence, 1, {}, most};
}

constexpr std::array kTransformerSettings = {
    Size("layers", "12", "transformer blocks", kMaxLayers),
    Size("hidden", "768", "width of the residual stream", kMaxWidth),
    Size("vocabulary", "50304", "rows of the embedding", kMaxRows),
    Size("sequence", "1024", "tokens of a sequence", kMaxRows),
};
constexpr std::array kGptSettings = {
    kTransformerSettings[0],
    kTransformerSettings[1],
    kTransformerSettings[2],
    kTransformerSettings[3],
    GeneratorSetting{"tied_head", SettingKind::kFlag, "false", "the head is the embedding's parameter"},
    GeneratorSetting{"head_bias", SettingKind::kFlag, "false",
                     "the head has a bias, as this project's trainer has it"},
};
constexpr std::array kBertSettings = {
    kTransformerSettings[0],
    kTransformerSettings[1],
    Size("vocabulary", "30522", "rows of the embedding", kMaxRows),
    Size("sequence", "512", "tokens of a sequence", kMaxRows),
};
constexpr std::array kLlamaSettings = {
    Size("layers", "32", "transformer blocks", kMaxLayers),
    Size("hidden", "4096", "width of the residual stream", kMaxWidth),
    Size("vocabulary", "32000", "rows of the embedding", kMaxRows),
    Size("sequence", "2048", "tokens of a sequence", kMaxRows),
    Size("feed_forward", "11008", "width inside the feed-forward part", kMaxWidth),
    Size("key_width", "4096", "rows of keys and of values (fewer: grouped queries)", kMaxWidth),
};
constexpr std::array kResnetSettings = {
    GeneratorSetting{"depth", SettingKind::kChoice, "50", "layers, as torchvision counts them", 1,
                     "18,34,50,101,152"},
    Size("width", "64", "channels of the first stage", 1 << 14),
    Size("classes", "1000", "rows of the last layer", kMaxRows),
};

Transformer TransformerOf(const SettingValues& values) {
  return {values.Integer("layers"), values.Integer("hidden"), values.Integer("vocabulary"),
          values.Integer("sequence"), false};
}

// Adds the parameters of layers to a model.
class ShapeList {
 public:
  explicit ShapeList(ModelShape& model) : model_(model) {}

  void Weight(const std::string& name, std::vector<int64_t> dims, TensorSplit split = TensorSplit::kNone) {
    model_.parameters.push_back({name + ".weight", std::move(dims), split});
  }
  // Adds a linear layer. A column-parallel layer splits its bias along the rows; in a row-parallel layer
  // every rank has the whole bias.
  void Linear(const std::string& name, int64_t out, int64_t in, TensorSplit split = TensorSplit::kNone) {
    Weight(name, {out, in}, split);
    model_.parameters.push_back(
        {name + ".bias", {out}, split == TensorSplit::kRows ? split : TensorSplit::kNone});
  }
  void Norm(const std::string& name, int64_t width) {
    Weight(name, {width});
    model_.parameters.push_back({name + ".bias", {width}});
  }
  // Running mean and variance are buffers, which DDP sends too.
  void BatchNorm(const std::string& name, int64_t width) {
    Norm(name, width);
    model_.float_buffers += 2 * width;  // running mean and variance
    ++model_.integer_buffers;
  }
  void Convolution(const std::string& name, int64_t out, int64_t in, int64_t kernel) {
    Weight(name, {out, in, kernel, kernel});
  }

 private:
  ModelShape& model_;
};

// Attention and feed-forward layers come in pairs: split by rows, then by columns.
ModelShape MakeGpt(const SettingValues& values) {
  ModelShape model{"gpt", {}, 0, 0, TransformerOf(values)};
  model.transformer->tied_head = values.Flag("tied_head");
  const auto& [layers, h, vocabulary, sequence, tied] = *model.transformer;
  ShapeList list(model);
  list.Weight("wte", {vocabulary, h}, TensorSplit::kRows);
  list.Weight("wpe", {sequence, h});
  for (int64_t i = 0; i < layers; ++i) {
    const std::string block = fmt::format("h.{}.", i);
    list.Norm(block + "ln_1", h);
    list.Linear(block + "attn.c_attn", 3 * h, h, TensorSplit::kRows);
    list.Linear(block + "attn.c_proj", h, h, TensorSplit::kColumns);
    list.Norm(block + "ln_2", h);
    list.Linear(block + "mlp.c_fc", 4 * h, h, TensorSplit::kRows);
    list.Linear(block + "mlp.c_proj", h, 4 * h, TensorSplit::kColumns);
  }
  list.Norm("ln_f", h);
  if (!tied) list.Weight("lm_head", {vocabulary, h}, TensorSplit::kRows);
  if (values.Flag("head_bias"))
    model.parameters.push_back({"lm_head.bias", {vocabulary}, TensorSplit::kRows});
  return model;
}

// The pooler is not split over tensor-parallel ranks.
ModelShape MakeBert(const SettingValues& values) {
  ModelShape model{"bert", {}, 0, 0, TransformerOf(values)};
  model.transformer->tied_head = true;
  const auto& [layers, h, vocabulary, sequence, tied] = *model.transformer;
  ShapeList list(model);
  list.Weight("embeddings.word_embeddings", {vocabulary, h}, TensorSplit::kRows);
  list.Weight("embeddings.position_embeddings", {sequence, h});
  list.Weight("embeddings.token_type_embeddings", {2, h});
  list.Norm("embeddings.LayerNorm", h);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string block = fmt::format("encoder.layer.{}.", i);
    for (const char* name : {"query", "key", "value"})
      list.Linear(block + "attention.self." + name, h, h, TensorSplit::kRows);
    list.Linear(block + "attention.output.dense", h, h, TensorSplit::kColumns);
    list.Norm(block + "attention.output.LayerNorm", h);
    list.Linear(block + "intermediate.dense", 4 * h, h, TensorSplit::kRows);
    list.Linear(block + "output.dense", h, 4 * h, TensorSplit::kColumns);
    list.Norm(block + "output.LayerNorm", h);
  }
  list.Linear("pooler.dense", h, h);
  return model;
}

ModelShape MakeLlama(const SettingValues& values) {
  ModelShape model{"llama", {}, 0, 0, TransformerOf(values)};
  const auto& [layers, h, vocabulary, sequence, tied] = *model.transformer;
  const int64_t keys = values.Integer("key_width"), inner = values.Integer("feed_forward");
  ShapeList list(model);
  list.Weight("tok_embeddings", {vocabulary, h}, TensorSplit::kRows);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string block = fmt::format("layers.{}.", i);
    list.Weight(block + "attention_norm", {h});  // where it is used; registered after feed_forward
    list.Weight(block + "attention.wq", {h, h}, TensorSplit::kRows);
    list.Weight(block + "attention.wk", {keys, h}, TensorSplit::kRows);
    list.Weight(block + "attention.wv", {keys, h}, TensorSplit::kRows);
    list.Weight(block + "attention.wo", {h, h}, TensorSplit::kColumns);
    list.Weight(block + "ffn_norm", {h});
    list.Weight(block + "feed_forward.w1", {inner, h}, TensorSplit::kRows);
    list.Weight(block + "feed_forward.w3", {inner, h}, TensorSplit::kRows);
    list.Weight(block + "feed_forward.w2", {h, inner}, TensorSplit::kColumns);
  }
  list.Weight("norm", {h});
  list.Weight("output", {vocabulary, h}, TensorSplit::kRows);
  return model;
}

// ResNet 18 and 34 have blocks of two convolutions. The deeper ones have blocks of three, which multiply the
// number of channels by 4.
struct ResnetPlan {
  std::array<int, 4> blocks;
  int64_t widening;
};

ResnetPlan PlanOf(const std::string& depth) {
  if (depth == "18") return {{2, 2, 2, 2}, 1};
  if (depth == "34") return {{3, 4, 6, 3}, 1};
  if (depth == "50") return {{3, 4, 6, 3}, 4};
  if (depth == "101") return {{3, 4, 23, 3}, 4};
  return {{3, 8, 36, 3}, 4};
}

// Adds a block with `in` channels at its beginning and `width` times `widening` channels at its end.
void AddResidualBlock(ShapeList& list, const std::string& block, int64_t in, int64_t width,
                      int64_t widening) {
  const int64_t out = width * widening;
  list.Convolution(block + "conv1", width, in, widening == 1 ? 3 : 1);
  list.BatchNorm(block + "bn1", width);
  list.Convolution(block + "conv2", width, width, 3);
  list.BatchNorm(block + "bn2", width);
  if (widening > 1) {
    list.Convolution(block + "conv3", out, width, 1);
    list.BatchNorm(block + "bn3", out);
  }
  if (in == out) return;
  list.Convolution(block + "downsample.0", out, in, 1);
  list.BatchNorm(block + "downsample.1", out);
}

ModelShape MakeResnet(const SettingValues& values) {
  ModelShape model{"resnet", {}, 0, 0, {}};
  const ResnetPlan plan = PlanOf(values.Choice("depth"));
  ShapeList list(model);
  int64_t in = values.Integer("width");
  list.Convolution("conv1", in, 3, 7);
  list.BatchNorm("bn1", in);
  for (size_t stage = 0; stage < plan.blocks.size(); ++stage) {
    const int64_t width = values.Integer("width") << stage;
    for (int block = 0; block < plan.blocks[stage]; ++block) {
      AddResidualBlock(list, fmt::format("layer{}.{}.", stage + 1, block), in, width, plan.widening);
      in = width * plan.widening;
    }
  }
  list.Linear("fc", values.Integer("classes"), in);
  return model;
}

constexpr std::array kPresets = {
    ModelPreset{"gpt", "GPT-2 style decoder", kGptSettings, MakeGpt},
    ModelPreset{"bert", "BERT style encoder", kBertSettings, MakeBert},
    ModelPreset{"llama", "LLaMA style decoder, without biases", kLlamaSettings, MakeLlama},
    ModelPreset{"resnet", "convolutional net with batch norms, whose buffers DDP sends too", kResnetSettings,
                MakeResnet},
};

}  // namespace

std::span<const ModelPreset> AllModelPresets() {
  return kPresets;
}

}  // namespace dynamiccl
