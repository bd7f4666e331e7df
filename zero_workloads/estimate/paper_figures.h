// SPDX-License-Identifier: Apache-2.0
// Compares the ZeRO paper's own memory figures (model_states.h) with the results of the formulas: Tables 1
// and 2, Figure 1, figures from the paper's text, and one well-known example for fp32. The comparison shows
// that the formulas are those of the paper.
#pragma once

#include <string>
#include <vector>

#include "zero_workloads/estimate/residual_memory.h"

namespace dynamiccl::zero {

// One number that the ZeRO paper prints, and what the estimator's formulas give for it.
struct PaperFigure {
  // Place in the paper, for example "Table 1" or "section 6.1".
  std::string source;
  // Subject of the figure, for example "7.5B, 64 ranks, P_os".
  std::string what;
  double estimate = 0;
  double printed = 0;
  // Holds what one unit in the last digit of the printed figure is worth. Printed figures may be truncated
  // instead of rounded.
  double last_digit = 1;
  // "GB" is 10^9 bytes, "B" 10^9 parameters, "days" are days.
  std::string unit;
  // The reason why the figure does not follow from the formula; empty if it does.
  std::string remark;

  // True if the estimate and the printed figure differ by at most one unit of the last digit.
  bool agrees() const;
};

// All figures, in the paper's order.
std::vector<PaperFigure> PaperFigures();

// A row of the ZeRO paper's Tables 5 to 10. Each row is one run behind the paper's Figures 2 to 7.
struct PaperRun {
  int figure = 0;
  // Name of the model, for example "60B".
  std::string model;
  // True for a run with ZeRO. False for the paper's baseline, Megatron-LM.
  bool zero = true;
  int gpus = 0;
  int tensor_parallel = 1;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  // Number of sequences of one data-parallel rank.
  int batch = 0;
  int total_batch = 0;

  TransformerShape shape() const { return {.layers = layers, .hidden = hidden}; }
  int data_parallel() const { return gpus / tensor_parallel; }
};
// All rows, in the order of the tables.
const std::vector<PaperRun>& PaperRuns();

// A configuration of the paper's Table 3. All configurations have buffers of constant size (the paper's C_B)
// and contiguous pools (the paper's M_D).
struct PaperConfig {
  // Name of the configuration, "C1" to "C5".
  const char* name;
  // The stage of ZeRO-DP.
  int stage;
  Checkpoints checkpoints;
};
// The configurations C1 to C5.
const std::vector<PaperConfig>& PaperConfigs();

}  // namespace dynamiccl::zero
