// SPDX-License-Identifier: Apache-2.0
// The model of a generated training job: its parameters by name and shape, in order of registration. It comes
// from a preset, or from any list of parameters in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/generators/setting_values.h"

namespace dynamiccl {

// Along which dimension Megatron's tensor parallelism splits a parameter: kRows is dimension 0, kColumns
// dimension 1.
enum class TensorSplit : uint8_t { kNone, kRows, kColumns };

// One parameter of a model.
struct ParameterShape {
  std::string name;           // "h.3.attn.c_attn.weight", as PyTorch names it
  std::vector<int64_t> dims;  // at least one
  TensorSplit split = TensorSplit::kNone;

  int64_t Elements() const;
};

// The transformer to which the parameters belong. It determines the collectives of activations.
struct Transformer {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocabulary = 0;
  int64_t sequence = 0;
  bool tied_head = false;  // the head shares the embedding's parameter
};

// A model. Modules run forward in the order in which their parameters are registered, and backward in the
// reverse.
struct ModelShape {
  std::string name;
  std::vector<ParameterShape> parameters;
  int64_t float_buffers = 0;    // elements of float32 buffers (running means and variances)
  int64_t integer_buffers = 0;  // elements of int64 buffers (batch counters)
  std::optional<Transformer> transformer;

  // Elements of all parameters: the Psi of the ZeRO paper.
  int64_t Elements() const;
};

// Lists the parameters that are used together, by index. Unit 0 is the root (embeddings, last norm, head).
// Then comes one unit for each beginning of a name up to its first number ("h.3", "layer1.0"): a transformer
// block or a residual block.
std::vector<std::vector<size_t>> UnitsOf(const ModelShape& model);

// One module. A leaf has the parameters whose names differ only in the last part. A container, which is a
// unit or the whole model, has none of its own.
struct ModuleShape {
  std::string name;
  std::vector<size_t> parameters;
  size_t end = 0;  // index after its last child; own index + 1 for a leaf
};
// All modules in order of use: a container stands before its children, the whole model first.
std::vector<ModuleShape> ModulesOf(const ModelShape& model);
// Indices of the direct children.
std::vector<size_t> ChildrenOf(const std::vector<ModuleShape>& modules, size_t module);

// A known model and the settings of its size.
struct ModelPreset {
  std::string_view name;
  std::string_view sentence;
  std::span<const GeneratorSetting> settings;
  ModelShape (*make)(const SettingValues&);
};
std::span<const ModelPreset> AllModelPresets();

// Reads a preset with its settings: "gpt", "gpt:layers=4,hidden=256".
Result<ModelShape> ParseModel(std::string_view text);

// Reads a file with one parameter per line: a name and its dimensions with 'x' between, "fc.weight
// 1000x2048". Empty lines and lines that begin with '#' do not count. Errors name the line.
Result<ModelShape> ReadParameterList(const std::string& path);

}  // namespace dynamiccl
