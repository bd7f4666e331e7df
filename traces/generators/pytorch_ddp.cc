// SPDX-License-Identifier: Apache-2.0
// PyTorch's DistributedDataParallel and, on top of it, ZeroRedundancyOptimizer. A step is
// - Broadcast of the buffers, if the model has any
// - backward: AllReduce for each bucket, in the order in which gradients arrive (reverse of registration)
// - find_unused_parameters: AllReduce of the used-parameter map
// - ZeroRedundancyOptimizer: Broadcast of each owner's parameters
// The first backward pass has one bucket. The second pass begins with Broadcasts by which the ranks agree on
// new buckets. The arguments gradient_as_bucket_view and static_graph change memory and checks but no call,
// so they are not settings here.
#include <algorithm>
#include <array>
#include <numeric>

#include "traces/generators/framework_generator.h"
#include "traces/generators/gradient_buckets.h"

namespace dynamiccl {
namespace {

// Bytes, from torch/csrc/distributed/c10d/reducer.hpp: kDefaultBucketBytesCap and kDefaultFirstBucketBytes.
constexpr std::string_view kDefaultBucketBytes = "26214400";
constexpr int64_t kDefaultFirstBucketBytes = 1 << 20;
// Bytes, from torch/nn/parallel/distributed.py: broadcast_bucket_size, for first weights and buffers.
constexpr int64_t kBroadcastBucketBytes = 250 << 20;

constexpr std::array kDdpSettings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "float32", "type of parameters and gradients"},
    GeneratorSetting{"bucket_bytes", SettingKind::kInteger, kDefaultBucketBytes, "bucket_cap_mb, in bytes"},
    GeneratorSetting{"first_bucket_bytes", SettingKind::kInteger, "0",
                     "cap of the first bucket; 0: as PyTorch, 1 MiB unless bucket_bytes is set", 0},
    GeneratorSetting{"accumulation_steps", SettingKind::kInteger, "1", "micro-steps of a step"},
    GeneratorSetting{"no_sync", SettingKind::kFlag, "true",
                     "all micro-steps but the last without a reduction"},
    GeneratorSetting{"find_unused_parameters", SettingKind::kFlag, "false",
                     "buckets by registration for ever, and one AllReduce of the used-parameter map"},
    GeneratorSetting{"broadcast_buffers", SettingKind::kFlag, "true",
                     "buffers go out from rank 0 before a step"},
};
constexpr std::array kZeroRedundancySettings = {
    kDdpSettings[0],
    kDdpSettings[1],
    kDdpSettings[2],
    kDdpSettings[3],
    kDdpSettings[4],
    kDdpSettings[5],
    kDdpSettings[6],
    GeneratorSetting{"parameters_as_bucket_view", SettingKind::kFlag, "false",
                     "one Broadcast a rank instead of one a parameter"},
};

class Ddp : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "ddp"; }
  std::string_view sentence() const override { return "PyTorch DistributedDataParallel"; }
  std::string_view source() const override {
    return "PyTorch 2.13: torch/nn/parallel/distributed.py, torch/csrc/distributed/c10d/reducer.cpp";
  }
  std::span<const GeneratorSetting> settings() const override { return kDdpSettings; }
  ZeroStage Stage(const GeneratorInput&) const override { return ZeroStage::kStage0; }
  void Construct(const GeneratorInput& input, OperationList& list) const override;
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Bytes of each parameter, in order of registration.
std::vector<int64_t> SizesOf(const ModelShape& model, int64_t element_bytes) {
  std::vector<int64_t> sizes;
  for (const ParameterShape& parameter : model.parameters)
    sizes.push_back(parameter.Elements() * element_bytes);
  return sizes;
}

// Bytes of the buckets, in order of launch. `rebuilt` is true from the second backward pass on.
std::vector<int64_t> BucketBytes(const GeneratorInput& input, bool rebuilt) {
  const SettingValues& settings = input.settings;
  std::vector<int64_t> sizes =
      SizesOf(input.model, static_cast<int64_t>(ElementBytes(settings.Type("dtype"))));
  const bool unused = settings.Flag("find_unused_parameters");
  const int64_t cap = settings.Integer("bucket_bytes");
  int64_t first = settings.Integer("first_bucket_bytes");
  if (first == 0) first = fmt::format("{}", cap) == kDefaultBucketBytes ? kDefaultFirstBucketBytes : cap;
  std::vector<int64_t> sums;
  if (!rebuilt && !unused) {
    // Until the order of arrival is known there is one bucket, so that no two ranks can launch buckets in
    // different orders.
    sums.push_back(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
    return sums;
  }
  if (!unused) std::reverse(sizes.begin(), sizes.end());
  for (const Bucket& bucket : BucketsThatReach(sizes, first, cap)) sums.push_back(SumOf(bucket, sizes));
  if (unused) std::reverse(sums.begin(), sums.end());
  return sums;
}

// Sends tensors of one type, joined until a message reaches the broadcast bucket.
void BroadcastCoalesced(std::span<const int64_t> sizes, DataType type, OperationList& list) {
  const auto element = static_cast<int64_t>(ElementBytes(type));
  for (const Bucket& bucket : BucketsThatReach(sizes, kBroadcastBucketBytes, kBroadcastBucketBytes))
    list.Broadcast(SumOf(bucket, sizes) / element, type, 0, Role::kOther);
}

// Buffers of each type are one message; a model without buffers sends nothing.
void BroadcastBuffers(const ModelShape& model, OperationList& list) {
  list.Broadcast(model.float_buffers, DataType::kFloat32, 0, Role::kOther);
  list.Broadcast(model.integer_buffers, DataType::kInt64, 0, Role::kOther);
}

// After the first backward pass has shown the order of arrival, rank 0 broadcasts the new buckets: the bucket
// of each parameter followed by the number of buckets, then the sizes of the buckets.
void BroadcastNewBuckets(const GeneratorInput& input, OperationList& list) {
  const auto parameters = static_cast<int64_t>(input.model.parameters.size());
  list.Broadcast(parameters + 1, DataType::kInt32, 0, Role::kOther);
  list.Broadcast(static_cast<int64_t>(BucketBytes(input, true).size()), DataType::kInt32, 0, Role::kOther);
}

// Checks that the ranks have the same parameters, then sends rank 0's weights and buffers.
void Ddp::Construct(const GeneratorInput& input, OperationList& list) const {
  int64_t sizes_and_strides = 0;
  for (const ParameterShape& parameter : input.model.parameters)
    sizes_and_strides += 2 * static_cast<int64_t>(parameter.dims.size());
  const DataType type = input.settings.Type("dtype");
  list.SetPhase(Phase::kOther);
  list.AllGather(input.world.data, DataType::kInt64, Role::kOther);  // the number of parameters
  list.Broadcast(sizes_and_strides, DataType::kInt64, 0, Role::kOther);
  BroadcastCoalesced(SizesOf(input.model, static_cast<int64_t>(ElementBytes(type))), type, list);
  BroadcastBuffers(input.model, list);
}

// Adds the calls of a forward pass and of a backward pass that reduces gradients. `pass` counts such passes
// from the start of the training.
void Pass(const GeneratorInput& input, int64_t pass, OperationList& list) {
  const SettingValues& settings = input.settings;
  const bool unused = settings.Flag("find_unused_parameters");
  list.SetPhase(Phase::kForward);
  if (pass == 1 && !unused) BroadcastNewBuckets(input, list);
  if (settings.Flag("broadcast_buffers")) BroadcastBuffers(input.model, list);
  list.SetPhase(Phase::kBackward);
  const DataType type = settings.Type("dtype");
  for (const int64_t bytes : BucketBytes(input, pass > 0)) {
    const int64_t elements = bytes / static_cast<int64_t>(ElementBytes(type));
    list.AllReduce(elements, type, ReduceOp::kSum, Role::kGradientReduce);
  }
  if (!unused) return;
  const auto parameters = static_cast<int64_t>(input.model.parameters.size());
  list.AllReduce(parameters, DataType::kInt32, ReduceOp::kSum, Role::kOther);
}

void Ddp::Step(const GeneratorInput& input, int step, OperationList& list) const {
  const SettingValues& settings = input.settings;
  const int64_t passes = settings.Flag("no_sync") ? 1 : settings.Integer("accumulation_steps");
  for (int64_t pass = 0; pass < passes; ++pass) Pass(input, step * passes + pass, list);
}

// ---- ZeroRedundancyOptimizer ----

// DDP whose optimizer updates a part of the parameters on each rank.
class ZeroRedundancy : public Ddp {
 public:
  std::string_view name() const override { return "zero-redundancy"; }
  std::string_view sentence() const override { return "DDP with PyTorch's ZeroRedundancyOptimizer (ZeRO-1)"; }
  std::string_view source() const override {
    return "PyTorch 2.13: torch/distributed/optim/zero_redundancy_optimizer.py";
  }
  std::span<const GeneratorSetting> settings() const override { return kZeroRedundancySettings; }
  ZeroStage Stage(const GeneratorInput&) const override { return ZeroStage::kStage1; }
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Returns, for each rank, the elements of the parameters that it owns. The parameters are distributed from
// the largest on, each to the rank that has the fewest elements so far.
std::vector<std::vector<int64_t>> Owned(const GeneratorInput& input) {
  std::vector<int64_t> sizes = SizesOf(input.model, 1);
  std::stable_sort(sizes.begin(), sizes.end(), std::greater<>());
  std::vector<std::vector<int64_t>> owned(static_cast<size_t>(input.world.data));
  std::vector<int64_t> sums(owned.size(), 0);
  for (const int64_t elements : sizes) {
    const auto least = static_cast<size_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
    owned[least].push_back(elements);
    sums[least] += elements;
  }
  return owned;
}

void ZeroRedundancy::Step(const GeneratorInput& input, int step, OperationList& list) const {
  Ddp::Step(input, step, list);
  list.SetPhase(Phase::kOptimizer);
  const DataType type = input.settings.Type("dtype");
  const auto owned = Owned(input);
  for (size_t rank = 0; rank < owned.size(); ++rank) {
    std::vector<int64_t> messages = owned[rank];
    if (input.settings.Flag("parameters_as_bucket_view"))
      messages = {std::accumulate(messages.begin(), messages.end(), int64_t{0})};
    for (const int64_t elements : messages)
      list.Broadcast(elements, type, static_cast<int>(rank), Role::kPostStepGather);
  }
}

}  // namespace

const FrameworkGenerator& DdpGenerator() {
  static const Ddp generator;
  return generator;
}

const FrameworkGenerator& ZeroRedundancyGenerator() {
  static const ZeroRedundancy generator;
  return generator;
}

}  // namespace dynamiccl
