// SPDX-License-Identifier: Apache-2.0
// Searches the ladder with short probe runs, then trains the largest rung that fits, once with each seed.
#include "studies/zero/capped.h"

#include <algorithm>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
// After two steps, all of a step's memory has been requested once: gradients, moments, and gathers of both
// passes.
constexpr int64_t kProbeSteps = 2;
constexpr int64_t kVocabulary = 256;

// Options of one run of the trainer.
std::vector<std::string> OptionsOf(const CappedSettings& settings, int stage, const LadderRung& rung,
                                   int64_t steps) {
  std::vector<std::string> options = settings.options;
  const auto number = [](int64_t value) { return std::to_string(value); };
  options.insert(options.end(), {"--memory-cap", settings.memory_cap, "--stage", number(stage), "--layers",
                                 number(rung.ladder.layers), "--hidden", number(rung.hidden()), "--heads",
                                 number(rung.ladder.heads), "--sequence", number(settings.sequence),
                                 "--steps", number(steps)});
  return options;
}

bool OutOfMemory(const Result<TrainerReport>& run) {
  return !run && run.error().kind == ErrorKind::kUnavailable;
}

Result<bool> Fits(TrainerRuns& runs, const CappedSettings& settings, int stage, int64_t number) {
  const auto run = runs.Train(OptionsOf(settings, stage, {number, settings.ladder}, kProbeSteps));
  if (OutOfMemory(run)) return false;
  if (!run) return tl::unexpected(run.error());
  return true;
}

Result<TrainerReport> TrainWithSeed(TrainerRuns& runs, const CappedSettings& settings,
                                    const CappedStage& found, int64_t seed) {
  std::vector<std::string> options = OptionsOf(settings, found.stage, found.rung, settings.steps);
  options.insert(options.end(), {"--eval-at-end", "--eval-every", std::to_string(settings.eval_every),
                                 "--seed", std::to_string(seed)});
  return runs.Train(options);
}

// Trains the found rung. Later steps may divide the memory differently from the two steps of the probe. If
// such a step does not fit, the next smaller rung is trained, and `say` gets a line about it.
Status TrainLargest(TrainerRuns& runs, const CappedSettings& settings, CappedStage& found,
                    const std::function<void(const std::string&)>& say) {
  while (found.rung.number > 0 && std::ssize(found.reports) < settings.seeds) {
    auto run = TrainWithSeed(runs, settings, found, std::ssize(found.reports) + 1);
    if (OutOfMemory(run)) {
      say(fmt::format("stage {}: width {} fits {} steps but not {}; the next smaller width", found.stage,
                      found.rung.hidden(), kProbeSteps, settings.steps));
      --found.rung.number;
      found.reports.clear();
      continue;
    }
    if (!run) return tl::unexpected(run.error());
    found.reports.push_back(std::move(*run));
  }
  return {};
}

double Millions(const CappedStage& stage, const CappedSettings& settings) {
  return static_cast<double>(stage.rung.parameters(settings.sequence)) / 1e6;
}

// The mean, and with several seeds the least and the most, of the bits per byte.
std::string BitsCell(const std::vector<double>& bits) {
  if (bits.size() == 1) return fmt::format("{:.3f}", bits[0]);
  const auto [least, most] = std::minmax_element(bits.begin(), bits.end());
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", Mean(bits), *least, *most);
}

std::string StageRow(const CappedStage& one, const CappedSettings& settings) {
  if (one.rung.number == 0)
    return fmt::format("{:<6} not even a width of {} fits\n", one.stage, settings.ladder.heads);
  const double peak = static_cast<double>(one.reports.front().peak_bytes.at("total")) / kMebibyte;
  return fmt::format("{:<6} {:>7} {:>7} {:>11.3f} M {:>9.2f}  {}\n", one.stage, settings.ladder.layers,
                     one.rung.hidden(), Millions(one, settings), peak, BitsCell(one.BitsPerByte()));
}

// Mean over the seeds of the i-th evaluation.
double MeanEvaluation(const CappedStage& stage, size_t i) {
  std::vector<double> bits;
  for (const TrainerReport& report : stage.reports)
    bits.push_back(report.evaluations[i].held_out_bits_per_byte);
  return Mean(bits);
}

// One row for each evaluation, one column for each stage that trained.
std::string EvaluationTable(const std::vector<CappedStage>& stages) {
  std::vector<const CappedStage*> trained;
  for (const CappedStage& one : stages) {
    if (!one.reports.empty()) trained.push_back(&one);
  }
  if (trained.empty()) return {};
  std::string text = "\nbits per byte, mean over the seeds\nsteps ";
  for (const CappedStage* one : trained) text += fmt::format("  stage {}", one->stage);
  const auto& evaluations = trained.front()->reports.front().evaluations;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    text += fmt::format("\n{:<6}", evaluations[i].after_step + 1);
    for (const CappedStage* one : trained) text += fmt::format(" {:>8.3f}", MeanEvaluation(*one, i));
  }
  return text + "\n";
}

Json EvaluationsJson(const TrainerReport& report) {
  Json evaluations = Json::array();
  for (const HeldOutEvaluation& one : report.evaluations) {
    evaluations.push_back(
        {{"steps", one.after_step + 1}, {"held_out_bits_per_byte", one.held_out_bits_per_byte}});
  }
  return evaluations;
}

}  // namespace

int64_t LadderRung::parameters(int64_t sequence) const {
  const int64_t h = hidden();
  return ladder.layers * (12 * h * h + 13 * h) + (2 * kVocabulary + sequence + 2) * h + kVocabulary;
}

std::vector<double> CappedStage::BitsPerByte() const {
  std::vector<double> bits;
  for (const TrainerReport& report : reports) bits.push_back(report.held_out_bits_per_byte);
  return bits;
}

Result<int64_t> LargestThatFits(const std::function<Result<bool>(int64_t)>& fits, int64_t guess) {
  DYNAMICCL_TRY(const bool guess_fits, fits(guess));
  // Invariant: `low` fits or is 0, and `high` does not fit once `closed` is true.
  int64_t low = guess_fits ? guess : 0, high = guess, step = 1;
  for (bool closed = !guess_fits; !closed; step *= 2) {
    high = low + step;
    DYNAMICCL_TRY(const bool fit, fits(high));
    closed = !fit;
    if (fit) low = high;
  }
  for (; !guess_fits && low == 0 && high > step; step *= 2) {
    DYNAMICCL_TRY(const bool fit, fits(high - step));
    (fit ? low : high) = high - step;
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
  int64_t guess = 1;
  for (int stage = 0; stage < 4; ++stage) {
    CappedStage found{.stage = stage, .rung = {0, settings.ladder}, .reports = {}};
    const auto fits = [&](int64_t number) { return Fits(runs, settings, stage, number); };
    DYNAMICCL_TRY(found.rung.number, LargestThatFits(fits, guess));
    guess = std::max<int64_t>(1, found.rung.number);
    say(fmt::format("stage {}: {} blocks of {} fit; {} steps, {} seed(s)", stage, settings.ladder.layers,
                    found.rung.hidden(), settings.steps, settings.seeds));
    DYNAMICCL_CHECK_OK(TrainLargest(runs, settings, found, say));
    stages.push_back(std::move(found));
  }
  return stages;
}

std::string CappedTable(const std::vector<CappedStage>& stages, const CappedSettings& settings) {
  std::string text = fmt::format("{:<6} {:>7} {:>7} {:>13} {:>9}  {}\n", "stage", "blocks", "hidden",
                                 "parameters", "peak MiB", "bits per byte");
  for (const CappedStage& one : stages) text += StageRow(one, settings);
  if (settings.eval_every > 0) text += EvaluationTable(stages);
  return text;
}

Json CappedJson(const std::vector<CappedStage>& stages, const CappedSettings& settings) {
  Json rows = Json::array();
  for (const CappedStage& one : stages) {
    Json row = {{"stage", one.stage},
                {"layers", settings.ladder.layers},
                {"hidden", one.rung.hidden()},
                {"parameters", one.rung.number == 0 ? 0 : one.rung.parameters(settings.sequence)},
                {"steps", settings.steps},
                {"peak_bytes", one.reports.empty() ? Json() : Json(one.reports.front().peak_bytes)},
                {"seeds", Json::array()}};
    for (const TrainerReport& report : one.reports) {
      row["seeds"].push_back({{"held_out_bits_per_byte", report.held_out_bits_per_byte},
                              {"evaluations", EvaluationsJson(report)}});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace dynamiccl
