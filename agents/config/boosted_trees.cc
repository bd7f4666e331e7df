// SPDX-License-Identifier: Apache-2.0
// XGBoost sees the inputs as whole numbers, so a split `x < 17.3` equals `x < 18`, and thresholds are exact
// as integers. Leaves are rounded to 16 fraction bits. Therefore XGBoost's own prediction differs from the
// policy's only by the rounding of leaves.
#include "agents/config/boosted_trees.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

namespace dynamiccl::agents {
namespace {

using Json = nlohmann::json;

// Deleters of XGBoost's handles.
struct FreeMatrix {
  void operator()(void* matrix) const { XGDMatrixFree(matrix); }
};
struct FreeBooster {
  void operator()(void* booster) const { XGBoosterFree(booster); }
};
using Matrix = std::unique_ptr<void, FreeMatrix>;
using Booster = std::unique_ptr<void, FreeBooster>;

Status Check(int result, const char* what) {
  if (result == 0) return {};
  return MakeError(ErrorKind::kInternal, "XGBoost: {}: {}", what, XGBGetLastError());
}

double MeanResidual(const std::vector<ConfigSample>& samples) {
  double sum = 0;
  for (const ConfigSample& sample : samples) sum += sample.residual;
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

// Scales the weights to mean 1, because XGBoost's min_child_weight is compared with their sum.
std::vector<float> WeightsOf(const std::vector<ConfigSample>& samples) {
  double sum = 0;
  for (const ConfigSample& sample : samples) sum += sample.weight;
  std::vector<float> weights;
  for (const ConfigSample& sample : samples)
    weights.push_back(static_cast<float>(sample.weight * static_cast<double>(samples.size()) / sum));
  return weights;
}

// Copies the samples into XGBoost's matrix. The target of a sample is its residual minus `base`.
Result<Matrix> MatrixOf(const std::vector<ConfigSample>& samples, double base) {
  std::vector<float> inputs, targets;
  for (const ConfigSample& sample : samples) {
    inputs.insert(inputs.end(), sample.inputs.begin(), sample.inputs.begin() + kConfigFeatures);
    targets.push_back(static_cast<float>(sample.residual - base));
  }
  DMatrixHandle handle = nullptr;
  DYNAMICCL_CHECK_OK(Check(XGDMatrixCreateFromMat(inputs.data(), samples.size(), kConfigFeatures,
                                                  std::numeric_limits<float>::quiet_NaN(), &handle),
                           "inputs"));
  Matrix matrix(handle);
  DYNAMICCL_CHECK_OK(
      Check(XGDMatrixSetFloatInfo(handle, "label", targets.data(), targets.size()), "targets"));
  const std::vector<float> weights = WeightsOf(samples);
  DYNAMICCL_CHECK_OK(
      Check(XGDMatrixSetFloatInfo(handle, "weight", weights.data(), weights.size()), "weights"));
  return matrix;
}

Result<Booster> Boost(const Matrix& matrix, const TreeTrainingSettings& settings) {
  BoosterHandle handle = nullptr;
  const DMatrixHandle data[] = {matrix.get()};
  DYNAMICCL_CHECK_OK(Check(XGBoosterCreate(data, 1, &handle), "create"));
  Booster booster(handle);
  // With one thread the sums are always added in the same order, so equal seeds give equal trees.
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", "reg:squarederror"},
      {"tree_method", "hist"},
      {"max_bin", "256"},
      {"max_depth", std::to_string(kTreeDepth)},
      {"eta", fmt::format("{}", settings.learning_rate)},
      {"min_child_weight", "4"},
      {"subsample", "0.8"},
      {"colsample_bytree", "0.8"},
      {"base_score", "0"},
      {"nthread", "1"},
      {"verbosity", "0"},
      {"seed", std::to_string(settings.seed)}};
  for (const auto& [name, value] : parameters)
    DYNAMICCL_CHECK_OK(Check(XGBoosterSetParam(handle, name, value.c_str()), name));
  for (int tree = 0; tree < settings.trees; ++tree)
    DYNAMICCL_CHECK_OK(Check(XGBoosterUpdateOneIter(handle, tree, matrix.get()), "training"));
  return booster;
}

// Returns the list of trees in XGBoost's JSON model, or kInternal if the model has an unknown form.
Result<Json> TreesOf(const Booster& booster) {
  bst_ulong length = 0;
  const char* text = nullptr;
  DYNAMICCL_CHECK_OK(
      Check(XGBoosterSaveModelToBuffer(booster.get(), R"({"format": "json"})", &length, &text), "export"));
  const Json model = Json::parse(text, text + length, nullptr, false);
  const Json::json_pointer path("/learner/gradient_booster/model/trees");
  if (model.is_discarded() || !model.contains(path) || !model.at(path).is_array())
    return MakeError(ErrorKind::kInternal, "XGBoost's model is not in the form known here");
  return model.at(path);
}

// Returns the condition rounded up. For whole numbers x, XGBoost's test `x < condition` has the same result
// with the rounded number.
int16_t ThresholdOf(double condition) {
  return static_cast<int16_t>(std::clamp(std::ceil(condition), -32768.0, 32767.0));
}

// Converts a leaf from octaves to fixed point with 16 fraction bits, clamped to the policy format's limit.
int32_t LeafOf(double octaves) {
  const double scaled = std::nearbyint(octaves * 65536);
  return static_cast<int32_t>(std::clamp<double>(scaled, -kTreeLeafLimit, kTreeLeafLimit));
}

// Copies the trained node `from` to position `node` of a complete tree. A leaf fills the whole subtree below
// its position.
void CopyNode(const Json& tree, size_t from, int node, int index, PolicyTensors& tensors) {
  const int left = tree.at("left_children").at(from).get<int>();
  const double condition = tree.at("split_conditions").at(from).get<double>();
  if (node >= kTreeNodes) {
    tensors.tree_leaves[index][node - kTreeNodes] = LeafOf(condition);
    return;
  }
  int16_t* split = tensors.tree_nodes[index][node];
  const bool leaf = left < 0;
  split[0] = leaf ? int16_t{0} : tree.at("split_indices").at(from).get<int16_t>();
  split[1] = leaf ? int16_t{0} : ThresholdOf(condition);
  const size_t below = leaf ? from : static_cast<size_t>(left);
  const size_t above = leaf ? from : tree.at("right_children").at(from).get<size_t>();
  CopyNode(tree, below, 2 * node + 1, index, tensors);
  CopyNode(tree, above, 2 * node + 2, index, tensors);
}

}  // namespace

bool CanTrainTrees() {
  return true;
}

std::string TreeLibrary() {
  int major = 0, minor = 0, patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return fmt::format("XGBoost {}.{}.{}", major, minor, patch);
}

Status TrainTrees(const std::vector<ConfigSample>& samples, const TreeTrainingSettings& settings,
                  PolicyTensors& tensors) {
  const double base = MeanResidual(samples);
  DYNAMICCL_TRY(const Matrix matrix, MatrixOf(samples, base));
  DYNAMICCL_TRY(const Booster booster, Boost(matrix, settings));
  DYNAMICCL_TRY(const Json trees, TreesOf(booster));
  const size_t count = std::min<size_t>(trees.size(), kTrees);
  for (size_t tree = 0; tree < count; ++tree) CopyNode(trees[tree], 0, 0, static_cast<int>(tree), tensors);
  tensors.trees = {static_cast<int32_t>(count), static_cast<int32_t>(std::nearbyint(std::clamp<double>(
                                                    base * 65536, -kTreeBaseLimit, kTreeBaseLimit)))};
  return {};
}

}  // namespace dynamiccl::agents
