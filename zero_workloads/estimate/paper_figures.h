// SPDX-License-Identifier: Apache-2.0
// The paper's own memory figures (model_states.h) beside what the formulas give: its Tables 1 and 2, Figure
// 1, and what its text and one well-known walk-through say in passing.
#pragma once

#include <string>
#include <vector>

#include "zero_workloads/estimate/residual_memory.h"

namespace dynamiccl::zero {

struct PaperFigure {
  std::string source;  // "Table 1", "section 6.1"
  std::string what;    // "7.5B, 64 ranks, P_os"
  double estimate = 0;
  double printed = 0;
  double last_digit = 1;  // worth of one in the printed figure's last digit; printed figures may be cut off
  std::string unit;       // "GB" is 10^9 bytes, "B" 10^9 parameters
  std::string remark;     // where the figure does not follow from the formula

  bool agrees() const;
};

// In the paper's order.
std::vector<PaperFigure> PaperFigures();

// A row of the paper's Tables 5 to 10: what was run for its Figures 2 to 7.
struct PaperRun {
  int figure = 0;
  std::string model;  // "60B"
  bool zero = true;   // false: the paper's baseline, Megatron-LM
  int gpus = 0;
  int tensor_parallel = 1;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int batch = 0;  // sequences of one data-parallel rank
  int total_batch = 0;

  TransformerShape shape() const { return {.layers = layers, .hidden = hidden}; }
  int data_parallel() const { return gpus / tensor_parallel; }
};
const std::vector<PaperRun>& PaperRuns();

// A configuration of the paper's Table 3. All have buffers of constant size (C_B) and memory in contiguous
// pools (M_D).
struct PaperConfig {
  const char* name;  // "C1"
  int stage;         // of ZeRO-DP
  Checkpoints checkpoints;
};
const std::vector<PaperConfig>& PaperConfigs();

}  // namespace dynamiccl::zero
