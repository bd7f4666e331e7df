// SPDX-License-Identifier: Apache-2.0
// The ZeRO paper's Figures 2 to 8, simulated point by point and printed beside the paper's values. The
// paper's statements about them are judged true or false. Figures are numbered as in the paper's text. Its
// appendix shifts the numbers (Table 10 "Figure 7" is Figure 4, Tables 7 to 9 are Figures 6 to 8).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/zero_paper/zero_paper_step.h"

namespace dynamiccl {

// One simulated value.
struct PaperPoint {
  std::string what;  // "60B, ZeRO C4, 128 GPUs, MP 16, batch 32"
  // Our value.
  double value = 0;
  std::string unit;  // "TFLOP/s a GPU", "B parameters", "GB"
  // The paper's value, if its text states one.
  std::optional<double> printed;
  // The step, if one was simulated.
  std::optional<PaperStep> step;

  // (ours - printed) / printed.
  std::optional<double> Error() const;
};

// A statement of the paper, with our values.
struct PaperClaim {
  // The statement with our values.
  std::string text;
  bool holds = false;
};

// One figure: points in the paper's order, and claims.
struct SimulatedFigure {
  int figure = 0;
  std::string title;
  std::vector<PaperPoint> points;
  std::vector<PaperClaim> claims;
};

// `figure` is 2 to 8; other numbers are an error.
Result<SimulatedFigure> SimulateFigure(int figure, const DescribedSystem& described,
                                       const Accelerator& accelerator);

// A readable table, followed by the claims.
std::string FormatFigure(const SimulatedFigure& figure);

}  // namespace dynamiccl
