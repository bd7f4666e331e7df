// SPDX-License-Identifier: Apache-2.0
// The fused kernel works on the gradients' device. States in host memory are copied there slice by slice and
// back. States on the device are not copied.
#include "zero_workloads/optimizer/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "zero_workloads/device/device.h"
#include "zero_workloads/device/host_memory.h"
#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

at::Tensor Zeros(int64_t elements, const at::TensorOptions& options, MemoryCategory category) {
  const CountAs scope(category);
  return at::zeros({elements}, options.dtype(at::kFloat));
}

}  // namespace

AdamWStates AdamWStates::Slice(int64_t begin, int64_t length) const {
  return {master.narrow(0, begin, length), first_moment.narrow(0, begin, length),
          second_moment.narrow(0, begin, length)};
}

AdamWStates AdamW::ZeroStates(int64_t elements, const at::TensorOptions& options) {
  return {Zeros(elements, options, MemoryCategory::kMaster),
          Zeros(elements, options, MemoryCategory::kMoments),
          Zeros(elements, options, MemoryCategory::kMoments)};
}

AdamW::AdamW(AdamWStates states, const AdamWSettings& settings, int64_t slice_elements)
    : states_(std::move(states)),
      settings_(settings),
      slice_elements_(slice_elements),
      steps_(at::zeros({}, at::kFloat)) {}

std::vector<StateTensor> AdamW::States() const {
  return {{"master", states_.master},
          {"first_moment", states_.first_moment},
          {"second_moment", states_.second_moment}};
}

int64_t AdamW::steps() const {
  return steps_.item().toLong();
}

void AdamW::set_steps(int64_t steps) {
  steps_.fill_(steps);
}

void AdamW::UpdateRange(int64_t begin, int64_t end, const at::Tensor& gradients, double learning_rate,
                        const at::Tensor& parameters) const {
  const int64_t slice = slice_elements_ == 0 ? end - begin : slice_elements_;
  for (; begin < end; begin += slice) {
    const int64_t length = std::min(slice, end - begin);
    Update(states_.Slice(begin, length), gradients.narrow(0, begin, length), learning_rate,
           parameters.defined() ? parameters.narrow(0, begin, length) : parameters);
  }
}

void AdamW::Step(const at::Tensor& gradients, double learning_rate, const at::Tensor& parameters,
                 const SubGroups& groups) {
  CountStep();
  int64_t end = master().numel();
  for (const int64_t begin : groups.begins) {
    UpdateRange(begin, end, gradients, learning_rate, parameters);
    if (groups.updated) groups.updated(begin);
    end = begin;
  }
  UpdateRange(0, end, gradients, learning_rate, parameters);
  // The copies to the host are asynchronous and must be complete before the states are read.
  if (LiesOnHost(master())) FinishCompute();
}

void AdamW::Update(const AdamWStates& slice, const at::Tensor& gradients, double learning_rate,
                   const at::Tensor& parameters) const {
  const CountAs category(MemoryCategory::kOffload);
  const auto here = [&](const at::Tensor& state) { return CopyToDevice(state, gradients.device()); };
  const AdamWStates states = {here(slice.master), here(slice.first_moment), here(slice.second_moment)};
  at::_fused_adamw_({states.master}, {gradients}, {states.first_moment}, {states.second_moment}, {},
                    {steps_.to(gradients.device())}, learning_rate, settings_.beta1, settings_.beta2,
                    settings_.weight_decay, settings_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  if (parameters.defined()) parameters.copy_(states.master);
  if (!LiesOnHost(slice.master)) return;
  CopyToHost(states.master, slice.master);
  CopyToHost(states.first_moment, slice.first_moment);
  CopyToHost(states.second_moment, slice.second_moment);
}

}  // namespace dynamiccl::zero
