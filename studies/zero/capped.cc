// SPDX-License-Identifier: Apache-2.0
// Searches the ladder with short probe runs, then trains the largest rung that fits.
#include "studies/zero/capped.h"

namespace dynamiccl {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
// After two steps all of a step's memory has been requested once: gradients, moments, gathers of both passes.
constexpr int64_t kProbeSteps = 2;
constexpr int64_t kVocabulary = 256;

// Options of one run of the trainer.
std::vector<std::string> OptionsOf(const CappedSettings& settings, int stage, const LadderRung& rung,
                                   int64_t steps) {
  std::vector<std::string> options = settings.options;
  const auto number = [](int64_t value) { return std::to_string(value); };
  options.insert(options.end(),
                 {"--memory-cap", settings.memory_cap, "--stage", number(stage), "--layers",
                  number(rung.layers()), "--hidden", number(rung.hidden()), "--heads", number(rung.heads()),
                  "--sequence", number(settings.sequence), "--steps", number(steps)});
  return options;
}

bool OutOfMemory(const Result<TrainerReport>& run) {
  return !run && run.error().kind == ErrorKind::kUnavailable;
}

Result<bool> Fits(TrainerRuns& runs, const CappedSettings& settings, int stage, int64_t number) {
  const auto run = runs.Train(OptionsOf(settings, stage, {number}, kProbeSteps));
  if (OutOfMemory(run)) return false;
  if (!run) return tl::unexpected(run.error());
  return true;
}

// Trains with evaluation. Evaluation may need more memory than the probe's steps; the next smaller rung is
// then the answer.
Status TrainLargest(TrainerRuns& runs, const CappedSettings& settings, CappedStage& found) {
  for (; found.rung.number > 0; --found.rung.number) {
    std::vector<std::string> options = OptionsOf(settings, found.stage, found.rung, settings.steps);
    options.push_back("--eval-at-end");
    const auto run = runs.Train(options);
    if (OutOfMemory(run)) continue;
    DYNAMICCL_TRY(found.report, run);
    found.bits_per_byte = found.report.held_out_bits_per_byte;
    return {};
  }
  return {};
}

double Millions(const CappedStage& stage, const CappedSettings& settings) {
  return static_cast<double>(stage.rung.parameters(settings.sequence)) / 1e6;
}

}  // namespace

int64_t LadderRung::parameters(int64_t sequence) const {
  const int64_t h = hidden();
  return layers() * (12 * h * h + 13 * h) + (2 * kVocabulary + sequence + 2) * h + kVocabulary;
}

Result<int64_t> LargestThatFits(const std::function<Result<bool>(int64_t)>& fits) {
  int64_t low = 0, high = 1;
  while (true) {
    DYNAMICCL_TRY(const bool fit, fits(high));
    if (!fit) break;
    low = std::exchange(high, 2 * high);
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    DYNAMICCL_TRY(const bool fit, fits(middle));
    (fit ? low : high) = middle;
  }
  return low;
}

Result<std::vector<CappedStage>> FindLargestModels(TrainerRuns& runs, const CappedSettings& settings,
                                                   const std::function<void(const std::string&)>& say) {
  std::vector<CappedStage> stages;
  for (int stage = 0; stage < 4; ++stage) {
    CappedStage found{.stage = stage};
    DYNAMICCL_TRY(found.rung.number,
                  LargestThatFits([&](int64_t number) { return Fits(runs, settings, stage, number); }));
    say(fmt::format("stage {}: {} blocks of {} fit; {} steps", stage, found.rung.layers(),
                    found.rung.hidden(), settings.steps));
    DYNAMICCL_CHECK_OK(TrainLargest(runs, settings, found));
    stages.push_back(std::move(found));
  }
  return stages;
}

std::string CappedTable(const std::vector<CappedStage>& stages, const CappedSettings& settings) {
  std::string text = fmt::format("{:<6} {:>7} {:>7} {:>13} {:>9} {:>14}\n", "stage", "blocks", "hidden",
                                 "parameters", "peak MiB", "bits per byte");
  for (const CappedStage& one : stages) {
    if (one.rung.number == 0) {
      text += fmt::format("{:<6} not even 1 block of 32 fits\n", one.stage);
      continue;
    }
    text +=
        fmt::format("{:<6} {:>7} {:>7} {:>11.3f} M {:>9.2f} {:>14.3f}\n", one.stage, one.rung.layers(),
                    one.rung.hidden(), Millions(one, settings),
                    static_cast<double>(one.report.peak_bytes.at("total")) / kMebibyte, one.bits_per_byte);
  }
  return text;
}

Json CappedJson(const std::vector<CappedStage>& stages, const CappedSettings& settings) {
  Json rows = Json::array();
  for (const CappedStage& one : stages) {
    rows.push_back({{"stage", one.stage},
                    {"layers", one.rung.layers()},
                    {"hidden", one.rung.hidden()},
                    {"parameters", one.rung.number == 0 ? 0 : one.rung.parameters(settings.sequence)},
                    {"steps", settings.steps},
                    {"held_out_bits_per_byte", one.rung.number == 0 ? Json() : Json(one.bits_per_byte)},
                    {"peak_bytes", one.report.peak_bytes}});
  }
  return rows;
}

}  // namespace dynamiccl
