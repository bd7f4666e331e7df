// SPDX-License-Identifier: Apache-2.0
// A run of the ZeRO paper's tables (zero_workloads/estimate/paper_figures.h), simulated: one step's time and
// what each GPU needs of its memory.
#pragma once

#include "src/base/status.h"
#include "tools/simulate/accelerator.h"
#include "tools/simulate/described_system.h"
#include "zero_workloads/estimate/paper_figures.h"

namespace dynamiccl {

struct PaperStep {
  int64_t step_ns = 0;
  int64_t compute_ns = 0;
  int64_t exposed_tensor_ns = 0;  // activation collectives
  int64_t exposed_data_ns = 0;    // gradients and parameters
  double tflops = 0;              // of a GPU, recomputation counted, as Megatron-LM counts
  double memory_bytes = 0;
  bool fits = true;
};

// C4, or C5 where C4 does not fit, was the paper's choice where it names none; a baseline is without ZeRO:
// pass `config` nullptr for it.
Result<PaperStep> SimulatePaperRun(const zero::PaperRun& run, const zero::PaperConfig* config,
                                   const DescribedSystem& described, const Accelerator& accelerator);

// Bytes of a GPU: states, checkpoints, one block's activations (Korthikanti et al., arXiv 2205.05198,
// equation 2: s b h (10 + 24/t + 5 a s / (h t))), and a buffer of all gradients in fp32 where there is none
// of constant size (section 3.2).
double PaperMemory(const zero::PaperRun& run, const zero::PaperConfig* config);

// What of a GPU's memory these may take; the rest is for contexts, buffers, and fragments.
double UsableMemory(const Accelerator& accelerator);

// The most parameters, by adding blocks to the run's model, and 0 where not even one block fits.
double LargestModel(zero::PaperRun run, const zero::PaperConfig* config, const Accelerator& accelerator);

}  // namespace dynamiccl
