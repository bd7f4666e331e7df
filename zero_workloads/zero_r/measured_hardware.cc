// SPDX-License-Identifier: Apache-2.0
// Each figure is measured in several rounds, of which the fastest counts. One AllReduce (maximum) over the
// seconds per operation and per byte finds the slowest rank. Memory is sent negated, so that the maximum
// gives the smallest.
#include "zero_workloads/zero_r/measured_hardware.h"

#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <limits>
#include <vector>

#include "src/base/clock.h"
#include "zero_workloads/device/device.h"

namespace dynamiccl::zero {
namespace {

// A matrix product of 2 * 512^3 = 2^28 operations, and copies of 2^20 elements (4 MiB in fp32): long compared
// with a clock tick and a kernel launch, short compared with a training step.
constexpr int64_t kSide = 512;
constexpr int64_t kElements = 1 << 20;
// Number of measured rounds. One more round before them warms up.
constexpr int kRounds = 3;

// Seconds of the fastest round. `work` returns a tensor that depends on everything measured.
double Seconds(const std::function<at::Tensor()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round <= kRounds; ++round) {
    const int64_t begin = MonotonicNanoseconds();
    work().view({-1})[0].item();  // waits for the device
    if (round > 0) best = std::min(best, 1e-9 * static_cast<double>(MonotonicNanoseconds() - begin));
  }
  return best;
}

double SecondsPerOperation(const at::TensorOptions& options) {
  const at::Tensor matrix = at::full({kSide, kSide}, 0.5, options);
  return Seconds([&] { return at::matmul(matrix, matrix); }) / (2.0 * kSide * kSide * kSide);
}

double SecondsPerHostByte(const at::TensorOptions& options) {
  const at::Tensor here = at::zeros({kElements}, options);
  const at::Tensor there = NewHostTensor(kElements, here.scalar_type());
  return Seconds([&] { return here.copy_(there.copy_(here)); }) / (2.0 * static_cast<double>(here.nbytes()));
}

// Seconds for each byte of an AllGather that comes from another rank. A single rank has no communication; the
// smallest positive time then stands for infinite bandwidth.
double SecondsPerByte(ProcessGroup* group, const at::TensorOptions& options) {
  if (group == nullptr || group->world() == 1) return std::numeric_limits<double>::min();
  const at::Tensor part = at::zeros({kElements / group->world()}, options);
  const at::Tensor whole = at::zeros({part.numel() * group->world()}, options);
  const double seconds = Seconds([&] {
    group->AwaitOnHost(group->AllGather(part, whole, {DYNAMICCL_PHASE_OTHER, DYNAMICCL_ROLE_OTHER}));
    return whole;
  });
  return seconds / static_cast<double>(part.nbytes() * (group->world() - 1));
}

}  // namespace

Hardware MeasureHardware(const MeasuredGroups& groups, double memory_bytes,
                         const at::TensorOptions& options) {
  const std::vector<double> own = {-memory_bytes, SecondsPerOperation(options),
                                   SecondsPerByte(groups.tensor, options),
                                   SecondsPerByte(groups.shard, options), SecondsPerHostByte(options)};
  const at::Tensor worst = at::tensor(own, at::kDouble).to(options.device());
  groups.world->AwaitOnHost(
      groups.world->AllReduce(worst, {DYNAMICCL_PHASE_OTHER, DYNAMICCL_ROLE_SCALAR}, ncclMax));
  const at::Tensor values = worst.cpu();
  const double* const value = values.const_data_ptr<double>();
  return {-value[0], 1 / value[1], 1 / value[2], 1 / value[3], 1 / value[4]};
}

}  // namespace dynamiccl::zero
