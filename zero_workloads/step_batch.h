// SPDX-License-Identifier: Apache-2.0
// Decides which samples a step trains on. Normally there are as many as requested. With --batch auto, there
// are as many as fit into the free memory of the rank that has least. The class also reports the amount of
// free memory through src/annotate, where the tuner reads it.
#pragma once

#include <cstdint>
#include <memory>

#include "zero_workloads/memory/auto_batch.h"
#include "zero_workloads/memory/taken_memory.h"
#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// The samples that one step trains on. They are equal on all ranks.
struct StepSamples {
  // Index of the first sample. Each step takes the samples after those of the previous step.
  int64_t first = 0;
  // Sequences of one micro-step, over all ranks.
  int64_t rows = 0;
};

// Settings of a StepBatch. They are equal on all ranks, except for `memory_cap` and `device`.
struct StepBatchSettings {
  // Sequences of one micro-step over all ranks; 0 means as many as fit.
  int64_t rows = 0;
  int64_t micro_steps = 1;
  // The ranks that share the rows: the data-parallel degree.
  int data_ranks = 1;
  // Bytes that this rank may use. 0 means that the number is unknown; `rows` must not be 0 then.
  int64_t memory_cap = 0;
  at::Device device = at::kCPU;
};

// Chooses the batch of each step. One rank's training loop owns the object and calls it on the training
// thread. All ranks choose the same rows, since the minimum over the ranks decides. A failed AllReduce throws
// as ProcessGroup does.
class StepBatch {
 public:
  // Every rank of `world` constructs one. `world` must outlive the object.
  StepBatch(const StepBatchSettings& settings, TakenMemory taken, ProcessGroup* world);

  // All ranks call Begin() before each step and End() after it. With automatic rows, Begin() performs one
  // AllReduce of a single fp32 number (the minimum over the ranks).
  StepSamples Begin(int64_t step);
  // With automatic rows, learns from the step's peak of memory.
  void End();

 private:
  // The number of rows that every rank has memory for. A collective call.
  int64_t AgreedRows(const MemoryState& state);

  StepBatchSettings settings_;
  TakenMemory taken_;
  ProcessGroup* world_;
  AutoBatch auto_batch_;
  // Bytes in use when the step began.
  int64_t held_ = 0;
  // Used only with automatic rows: the next unused sample, and this rank's rows in the current step.
  int64_t next_sample_ = 0, rows_of_rank_ = 0;
};

}  // namespace dynamiccl::zero
