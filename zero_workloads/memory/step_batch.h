// SPDX-License-Identifier: Apache-2.0
// Which samples a step trains on: as many as were asked for, or with --batch auto as many as fit into the
// memory that is free on the rank that has least. Tells the level of memory through src/annotate.
#pragma once

#include <cstdint>
#include <memory>

#include "zero_workloads/memory/auto_batch.h"
#include "zero_workloads/memory/taken_memory.h"
#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

struct StepSamples {
  int64_t first = 0;  // of the run's samples, which are taken one after another
  int64_t rows = 0;   // of a micro-step, over all ranks
};

struct StepBatchSettings {
  int64_t rows = 0;  // of a micro-step, over all ranks; 0: as many as fit
  int64_t micro_steps = 1;
  int data_ranks = 1;      // that share the rows
  int64_t memory_cap = 0;  // of this rank; 0: not known, and then `rows` is not 0
  at::Device device = at::kCPU;
};

class StepBatch {
 public:
  // All ranks of `world` take part; it outlives the object.
  StepBatch(const StepBatchSettings& settings, TakenMemory taken, ProcessGroup* world);

  // All ranks call both, around each step. With rows to be found, one AllReduce of one number (the minimum
  // over the ranks).
  StepSamples Begin(int64_t step);
  void End();

 private:
  int64_t AgreedRows(const MemoryState& state);

  StepBatchSettings settings_;
  TakenMemory taken_;
  ProcessGroup* world_;
  AutoBatch auto_batch_;
  int64_t held_ = 0;
  int64_t next_sample_ = 0, rows_of_rank_ = 0;  // with rows to be found
};

}  // namespace dynamiccl::zero
