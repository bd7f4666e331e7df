// SPDX-License-Identifier: Apache-2.0
// The figures that the ZeRO paper prints, table by table, with the formula from which each figure follows.
#include "zero_workloads/estimate/paper_figures.h"

#include <fmt/format.h>

#include <cmath>

#include "zero_workloads/estimate/model_states.h"
#include "zero_workloads/estimate/training_time.h"

namespace dynamiccl::zero {
namespace {

// 10^9: the bytes of the paper's GB, and the parameters of its B.
constexpr double kBillion = 1e9;
// The ZeRO paper's names of the stages 0 to 3.
constexpr const char* kStageNames[] = {"no partition", "P_os", "P_os+g", "P_os+g+p"};

std::string Size(double parameters) {
  return parameters >= 1000 * kBillion ? fmt::format("{:g}T", parameters / kBillion / 1000)
                                       : fmt::format("{:g}B", parameters / kBillion);
}

double StatesInGb(double parameters, const StateBytes& bytes, int stage, int64_t ranks) {
  return StatesOf(parameters, bytes, stage, ranks).total() / kBillion;
}

void AddTable1(std::vector<PaperFigure>& figures) {
  // A row of Table 1: a data-parallel degree and the printed GB.
  struct Row {
    int ranks;
    // The GB that the paper prints, for each model and for stages 1 to 3.
    double printed[3][3];
  };
  // Parameters of the three models of the table.
  constexpr double kModels[] = {7.5 * kBillion, 128 * kBillion, 1000 * kBillion};
  constexpr Row kRows[] = {{1, {{120, 120, 120}, {2048, 2048, 2048}, {16000, 16000, 16000}}},
                           {4, {{52.5, 41.3, 30}, {896, 704, 512}, {7000, 5500, 4000}}},
                           {16, {{35.6, 21.6, 7.5}, {608, 368, 128}, {4750, 2875, 1000}}},
                           {64, {{31.4, 16.6, 1.88}, {536, 284, 32}, {4187, 2218, 250}}},
                           {256, {{30.4, 15.4, 0.47}, {518, 263, 8}, {4046, 2054, 62.5}}},
                           {1024, {{30.1, 15.1, 0.12}, {513, 257, 2}, {4011, 2013, 15.6}}}};
  for (const Row& row : kRows) {
    for (int model = 0; model < 3; ++model) {
      for (int stage = 1; stage <= 3; ++stage) {
        const double printed = row.printed[model][stage - 1];
        figures.push_back({"Table 1",
                           fmt::format("{}, DP {}, {}", Size(kModels[model]), row.ranks, kStageNames[stage]),
                           StatesInGb(kModels[model], kMixedPrecisionAdam, stage, row.ranks), printed,
                           printed < 2 ? 0.01 : (printed < 100 ? 0.1 : 1), "GB", ""});
      }
    }
  }
}

// The largest models on devices of 32 GB, with 64 data-parallel ranks in each row.
void AddTable2(std::vector<PaperFigure>& figures) {
  // A row of Table 2: a tensor-parallel degree and the printed billions of parameters.
  struct Row {
    int tensor_parallel;
    // The billions of parameters that the paper prints, for stages 0 to 3.
    double printed[4];
  };
  constexpr Row kRows[] = {{1, {2, 7.6, 14.4, 128}},
                           {2, {4, 15.2, 28.8, 256}},
                           {4, {8, 30.4, 57.6, 500}},
                           {8, {16, 60.8, 115.2, 1000}},
                           {16, {32, 121.6, 230.4, 2000}}};
  // Memory of one device in bytes.
  constexpr double kDevice = 32 * kBillion;
  for (const Row& row : kRows) {
    for (int stage = 0; stage <= 3; ++stage) {
      const double one = MostParameters(kDevice, kMixedPrecisionAdam, stage, 64) / kBillion;
      // The paper truncated the figure of one rank and then multiplied it by the tensor-parallel degree, so
      // the error grows with the degree.
      const double digit = 0.1 * row.tensor_parallel;
      const bool trillions = row.printed[stage] >= 500;
      figures.push_back(
          {"Table 2",
           fmt::format("largest model, {} x 64 ranks of 32 GB, {}", row.tensor_parallel, kStageNames[stage]),
           one * row.tensor_parallel, row.printed[stage], trillions ? 50 : digit, "B",
           trillions ? "printed in trillions" : ""});
    }
  }
}

void AddFigure1(std::vector<PaperFigure>& figures) {
  // The GB that the paper prints, for stages 0 to 3.
  constexpr double kPrinted[] = {120, 31.4, 16.6, 1.9};
  for (int stage = 0; stage <= 3; ++stage) {
    figures.push_back({"Figure 1", fmt::format("7.5B, 64 ranks, {}", kStageNames[stage]),
                       StatesInGb(7.5 * kBillion, kMixedPrecisionAdam, stage, 64), kPrinted[stage], 0.1, "GB",
                       ""});
  }
}

// The example that introductions to ZeRO and FSDP calculate: 7B parameters in fp32 with Adam on 8 ranks.
void AddFp32Example(std::vector<PaperFigure>& figures) {
  // The GB that these introductions print, for stages 0 to 3.
  constexpr double kPrinted[] = {112, 63, 38.5, 14};
  for (int stage = 0; stage <= 3; ++stage) {
    figures.push_back({"fp32 example", fmt::format("7B, 8 ranks, {}", kStageNames[stage]),
                       StatesInGb(7 * kBillion, kFp32Adam, stage, 8), kPrinted[stage], 0.1, "GB", ""});
  }
}

// The shapes of the paper's 1.5B and 100B models.
constexpr TransformerShape kGpt2{.layers = 48, .hidden = 1600};
constexpr TransformerShape k100B{.layers = 125, .hidden = 8192};

void AddActivations(std::vector<PaperFigure>& figures) {
  const auto gb = [](const TransformerShape& shape, int tensor_parallel, double bytes,
                     Checkpoints checkpoints) {
    return ActivationsOf(shape, 32, tensor_parallel, bytes, checkpoints).kept / kBillion;
  };
  figures.push_back({"section 3.2", "1.5B, sequence 1024, batch 32: activations",
                     gb(kGpt2, 1, 2, Checkpoints::kNone), 60, 1, "GB", ""});
  figures.push_back({"section 3.2", "the same with checkpoints",
                     ActivationsWithBestCheckpoints(kGpt2, 32, 2) / kBillion, 8, 1, "GB", ""});
  figures.push_back({"section 3.2", "100B, batch 32: checkpoints of every block",
                     gb(k100B, 1, 2, Checkpoints::kEveryBlock), 60, 10, "GB", "\"around 60 GB\""});
  const char* const remark = "2 bytes a number; the printed figure is that many numbers, 1 byte each";
  figures.push_back({"section 6.1", "100B, batch 32: checkpoints of every block",
                     gb(k100B, 16, 2, Checkpoints::kEveryBlock), 33, 1, "GB", remark});
  figures.push_back({"section 6.1", "the same with P_a over 16 ranks",
                     gb(k100B, 16, 2, Checkpoints::kPartitioned), 2, 1, "GB", remark});
}

void AddBuffers(std::vector<PaperFigure>& figures) {
  figures.push_back({"section 3.2", "1.5B: one fused buffer in fp32", FusedBuffer(1.5 * kBillion) / kBillion,
                     6, 1, "GB", ""});
  figures.push_back(
      {"section 6.2", "3B: one fused buffer in fp32", FusedBuffer(3 * kBillion) / kBillion, 12, 1, "GB", ""});
}

// Section 9 scales a run of Bert-Large, 67 minutes on 1024 GPUs for 330 million parameters, to 10^12
// parameters with equal samples and equal speed. Tokens and speed thus cancel out.
void AddTrainingTime(std::vector<PaperFigure>& figures) {
  constexpr double kDaysOfBert = 67.0 / (24 * 60);
  const auto seconds = [](double parameters) {
    return TrainingSeconds(
        {.parameters = parameters, .tokens = kBillion, .devices = 1024, .operations_a_second = 1e12});
  };
  figures.push_back({"section 9", "1T on 1024 GPUs, scaled from Bert-Large: time to train",
                     kDaysOfBert * seconds(1000 * kBillion) / seconds(0.33 * kBillion), 140, 1, "days", ""});
}

}  // namespace

bool PaperFigure::agrees() const {
  return std::abs(estimate - printed) <= last_digit * (1 + 1e-9);
}

std::vector<PaperFigure> PaperFigures() {
  std::vector<PaperFigure> figures;
  AddFigure1(figures);
  AddTable1(figures);
  AddTable2(figures);
  AddActivations(figures);
  AddBuffers(figures);
  AddTrainingTime(figures);
  AddFp32Example(figures);
  return figures;
}

const std::vector<PaperRun>& PaperRuns() {
  static const std::vector<PaperRun> kRuns = {
      {2, "1.5B", true, 400, 1, 48, 1600, 16, 24, 9600},  {2, "1.5B", false, 400, 2, 48, 1600, 16, 16, 3200},
      {2, "8B", true, 400, 4, 72, 3072, 24, 64, 6400},    {2, "8B", false, 400, 8, 72, 3072, 24, 8, 400},
      {2, "40B", true, 400, 4, 88, 6144, 32, 12, 1200},   {2, "40B", false, 384, 32, 88, 6144, 64, 4, 48},
      {2, "60B", true, 400, 16, 132, 6144, 32, 64, 1600}, {2, "60B", false, 384, 64, 132, 6144, 64, 4, 24},
      {2, "80B", true, 400, 16, 100, 8192, 64, 32, 800},  {2, "80B", false, 384, 128, 100, 8192, 128, 4, 12},
      {2, "100B", true, 400, 16, 125, 8192, 64, 32, 800}, {2, "100B", false, 384, 128, 125, 8192, 128, 2, 6},
      {2, "120B", true, 400, 16, 150, 8192, 64, 24, 600}, {2, "120B", false, 384, 128, 150, 8192, 128, 2, 6},
      {2, "140B", true, 400, 16, 175, 8192, 64, 16, 400}, {2, "140B", false, 384, 128, 175, 8192, 128, 2, 6},
      {2, "170B", true, 400, 16, 212, 8192, 64, 12, 300}, {2, "170B", false, 256, 256, 212, 8192, 256, 2, 2},
      {3, "60B", true, 64, 16, 75, 8192, 32, 16, 64},     {3, "60B", true, 128, 16, 75, 8192, 32, 48, 384},
      {3, "60B", true, 256, 16, 75, 8192, 32, 48, 768},   {3, "60B", true, 400, 16, 75, 8192, 32, 64, 1600},
      {4, "40B", true, 400, 16, 50, 8192, 32, 16, 400},   {4, "60B", true, 400, 16, 132, 6144, 64, 16, 400},
      {4, "140B", true, 400, 16, 175, 8192, 64, 16, 400}, {4, "150B", true, 400, 16, 187, 8192, 64, 16, 400},
      {4, "50B", true, 400, 16, 62, 8192, 32, 16, 400},   {5, "40B", true, 400, 16, 50, 8192, 32, 16, 400},
      {5, "40B", true, 400, 16, 50, 8192, 32, 16, 400},   {5, "40B", true, 400, 16, 50, 8192, 32, 16, 400},
      {5, "40B", true, 400, 16, 50, 8192, 32, 16, 400},   {5, "40B", true, 400, 16, 50, 8192, 32, 16, 400},
      {5, "100B", true, 400, 16, 125, 8192, 64, 32, 800}, {5, "100B", true, 400, 16, 125, 8192, 64, 32, 800},
      {6, "60B", true, 128, 16, 75, 8192, 64, 2, 16},     {6, "60B", true, 128, 16, 75, 8192, 64, 4, 32},
      {6, "60B", true, 128, 16, 75, 8192, 64, 32, 256},   {6, "60B", true, 128, 16, 75, 8192, 64, 32, 256},
      {6, "60B", true, 128, 16, 75, 8192, 64, 8, 64},     {6, "170B", true, 400, 16, 212, 8192, 64, 12, 300},
      {7, "1.5B", true, 128, 1, 34, 1920, 16, 24, 3072},  {7, "2.5B", true, 128, 1, 54, 1920, 16, 24, 3072},
      {7, "4B", true, 128, 1, 64, 2304, 24, 16, 2048},    {7, "6B", true, 128, 1, 52, 3072, 24, 12, 1536},
      {7, "8B", true, 128, 1, 72, 3072, 24, 8, 1024},     {7, "10B", true, 128, 1, 50, 4096, 32, 6, 768},
      {7, "11B", true, 128, 1, 54, 4096, 32, 4, 512},     {7, "12B", true, 128, 1, 58, 4096, 32, 4, 512},
      {7, "13B", true, 128, 1, 62, 4096, 32, 2, 256},     {7, "1.16B", false, 128, 1, 24, 1920, 16, 8, 1024},
      {7, "1.38B", false, 128, 1, 40, 1536, 16, 1, 128},
  };
  return kRuns;
}

const std::vector<PaperConfig>& PaperConfigs() {
  static const std::vector<PaperConfig> kConfigs = {{"C1", 1, Checkpoints::kEveryBlock},
                                                    {"C2", 1, Checkpoints::kPartitioned},
                                                    {"C3", 2, Checkpoints::kEveryBlock},
                                                    {"C4", 2, Checkpoints::kPartitioned},
                                                    {"C5", 2, Checkpoints::kPartitionedCpu}};
  return kConfigs;
}

}  // namespace dynamiccl::zero
