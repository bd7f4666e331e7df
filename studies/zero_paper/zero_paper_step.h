// SPDX-License-Identifier: Apache-2.0
// Simulates a run of the ZeRO paper's tables (zero_workloads/estimate/paper_figures.h). The results are the
// time of one step and the memory that each GPU needs.
#pragma once

#include "src/base/status.h"
#include "tools/simulate/accelerator.h"
#include "tools/simulate/described_system.h"
#include "zero_workloads/estimate/paper_figures.h"

namespace dynamiccl {

// One simulated step.
struct PaperStep {
  int64_t step_ns = 0;
  int64_t compute_ns = 0;
  // Exposed time of activation collectives.
  int64_t exposed_tensor_ns = 0;
  // Exposed time of gradient and parameter collectives.
  int64_t exposed_data_ns = 0;
  // TFLOP/s of a GPU. Recomputation counts, as Megatron-LM counts it.
  double tflops = 0;
  double memory_bytes = 0;
  bool fits = true;
};

// Simulates a run. Where the paper names no configuration, it used C4, or C5 where C4 does not fit. A null
// `config` means the baseline without ZeRO.
Result<PaperStep> SimulatePaperRun(const zero::PaperRun& run, const zero::PaperConfig* config,
                                   const DescribedSystem& described, const Accelerator& accelerator);

// Bytes of a GPU: the states, the checkpoints, the activations of one block, and a buffer of all gradients in
// fp32 if there is none of constant size (section 3.2). The activations follow Korthikanti et al., arXiv
// 2205.05198, equation 2: s b h (10 + 24/t + 5 a s / (h t)).
double PaperMemory(const zero::PaperRun& run, const zero::PaperConfig* config);

// Bytes of a GPU that PaperMemory may fill. The rest is for contexts, buffers and fragments.
double UsableMemory(const Accelerator& accelerator);

// The most parameters that fit when blocks are added to the run's model, or 0 if not even one block fits.
double LargestModel(zero::PaperRun run, const zero::PaperConfig* config, const Accelerator& accelerator);

}  // namespace dynamiccl
