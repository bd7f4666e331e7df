// SPDX-License-Identifier: Apache-2.0
// Measures the memory that a step adds, predicts the rows that fit, and takes the minimum over all ranks.
#include "zero_workloads/step_batch.h"

#include <ATen/ops/full.h>

#include "src/annotate/phase_marker.h"
#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

// Maximum number of rows of one rank. Larger batches do not make a step more efficient on any device, so the
// search ends here.
constexpr int64_t kMaxRows = 4096;

}  // namespace

StepBatch::StepBatch(const StepBatchSettings& settings, TakenMemory taken, ProcessGroup* world)
    : settings_(settings), taken_(std::move(taken)), world_(world), auto_batch_(kMaxRows) {}

StepSamples StepBatch::Begin(int64_t step) {
  held_ = ReadMemoryCounters().total.current;
  const MemoryState state{settings_.memory_cap, taken_.At(step), held_};
  if (state.cap > 0) annotate::MarkMemory(state.Free(), state.cap);
  TakePeriodPeak();
  const int64_t rows = settings_.rows > 0 ? settings_.rows : AgreedRows(state) * settings_.data_ranks;
  annotate::MarkSamples(rows * settings_.micro_steps / settings_.data_ranks);
  if (settings_.rows > 0) return {step * rows * settings_.micro_steps, rows};
  const StepSamples samples{next_sample_, rows};
  rows_of_rank_ = samples.rows / settings_.data_ranks;
  next_sample_ += samples.rows * settings_.micro_steps;
  return samples;
}

void StepBatch::End() {
  if (settings_.rows == 0) auto_batch_.Learn(rows_of_rank_, TakePeriodPeak() - held_);
}

// fp32 holds the rows exactly, since they are at most kMaxRows.
int64_t StepBatch::AgreedRows(const MemoryState& state) {
  const at::Tensor rows = at::full({1}, static_cast<double>(auto_batch_.Rows(state)),
                                   at::TensorOptions().dtype(at::kFloat).device(settings_.device));
  world_->AwaitOnHost(world_->AllReduce(rows, {DYNAMICCL_PHASE_OTHER, DYNAMICCL_ROLE_SCALAR}, ncclMin));
  return static_cast<int64_t>(rows.item<float>());
}

}  // namespace dynamiccl::zero
