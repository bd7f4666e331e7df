// SPDX-License-Identifier: Apache-2.0
// The ZeRO paper's Figures 2 to 8, simulated point by point beside what the paper prints, and its statements
// about them, found true or not. Figures are numbered as in the paper's text; its appendix shifts them
// (Table 10 "Figure 7" is Figure 4, Tables 7 to 9 are Figures 6 to 8).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/zero_paper/zero_paper_step.h"

namespace dynamiccl {

struct PaperPoint {
  std::string what;               // "60B, ZeRO C4, 128 GPUs, MP 16, batch 32"
  double value = 0;               // ours
  std::string unit;               // "TFLOP/s a GPU", "B parameters", "GB"
  std::optional<double> printed;  // in the paper's text
  std::optional<PaperStep> step;  // where one was simulated

  // (ours - printed) / printed.
  std::optional<double> Error() const;
};

struct PaperClaim {
  std::string text;  // with our figures
  bool holds = false;
};

struct SimulatedFigure {
  int figure = 0;
  std::string title;
  std::vector<PaperPoint> points;
  std::vector<PaperClaim> claims;
};

// 2 to 8.
Result<SimulatedFigure> SimulateFigure(int figure, const DescribedSystem& described,
                                       const Accelerator& accelerator);

std::string FormatFigure(const SimulatedFigure& figure);

}  // namespace dynamiccl
