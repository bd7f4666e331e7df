// SPDX-License-Identifier: Apache-2.0
// Tests that the simulated figures show what the ZeRO paper states about its measured figures.
#include "studies/zero_paper/zero_paper_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

SimulatedFigure Figure(int number) {
  const auto figure = SimulateFigure(number, DescribedSystems()[0], *FindAccelerator("v100"));
  EXPECT_TRUE(figure.has_value()) << (figure ? "" : figure.error().message);
  if (!figure) return {};
  return *figure;
}

class ZeroPaper : public ::testing::TestWithParam<int> {};

// Two statements do not hold in the simulation; docs/results/zero-paper.md has the reasons. For one, both GPU
// counts have a batch of 48. For the other, the simulated value is 20.7 where the paper states "below 20".
bool KnownNotToHold(const PaperClaim& claim) {
  return claim.text.starts_with("superlinear from 128 to 256 GPUs") ||
         claim.text.starts_with("the baseline's largest model stays below 20");
}

TEST_P(ZeroPaper, ItsStatementsHold) {
  const SimulatedFigure figure = Figure(GetParam());
  ASSERT_FALSE(figure.points.empty());
  for (const PaperClaim& claim : figure.claims) EXPECT_NE(claim.holds, KnownNotToHold(claim)) << claim.text;
  EXPECT_NE(FormatFigure(figure).find(figure.points.front().what), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Figures, ZeroPaper, ::testing::Values(2, 3, 4, 5, 6, 7, 8));

// The largest errors where the paper prints a number. A change of the model that makes them larger fails
// here.
TEST(ZeroPaperSteps, StayAsNearToThePrintedFigures) {
  const auto errors_below = [](int number, size_t first, size_t last, double bound) {
    const SimulatedFigure figure = Figure(number);
    for (size_t i = first; i < std::min(last, figure.points.size()); ++i)
      if (figure.points[i].printed) {
        EXPECT_LT(std::abs(*figure.points[i].Error()), bound) << figure.points[i].what;
      }
  };
  errors_below(2, 6, 19, 0.12);  // ZeRO at 100B, and their mean
  errors_below(4, 0, 99, 0.05);
  errors_below(5, 0, 99, 0.05);
  errors_below(6, 3, 5, 0.15);  // C4 and C5
}

TEST(ZeroPaperSteps, ThereIsNoOtherFigure) {
  EXPECT_FALSE(SimulateFigure(1, DescribedSystems()[0], *FindAccelerator("v100")).has_value());
  EXPECT_FALSE(SimulateFigure(9, DescribedSystems()[0], *FindAccelerator("v100")).has_value());
}

// The constants were computed from these published runs, so they must give the same times.
TEST(Accelerators, GiveTheirPublishedRunsBack) {
  const auto tflops = [](const char* name, const BlockWork& work) {
    return ForwardFlops(work) / ForwardNs(*FindAccelerator(name), work) * 1e-3;
  };
  EXPECT_NEAR(tflops("v100", {8, 1024, 1536, 16, 1}), 39, 0.5);
  EXPECT_NEAR(tflops("a100", {16, 2048, 2304, 24, 1}), 137, 1.5);
  EXPECT_NEAR(tflops("h100", {1, 8192, 16384, 128, 8}), 430, 5);
  EXPECT_EQ(FindAccelerator("tpu"), nullptr);
}

}  // namespace
}  // namespace dynamiccl
