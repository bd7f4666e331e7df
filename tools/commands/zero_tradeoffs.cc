// SPDX-License-Identifier: Apache-2.0
// `dynamiccl zero tradeoffs`: each choice of the trainer's design against its alternative, measured.
#include <spdlog/spdlog.h>

#include "tools/commands/zero_studies.h"
#include "tools/exit_code.h"
#include "tools/zero/tradeoffs.h"

namespace dynamiccl {
namespace {

struct Words {
  ZeroStudyOptions study;
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t steps = 20;
  std::string bucket_bytes = "256K";
  int rounds = 5;
};

void Register(CommandLine& line, Words& words) {
  CLI::App* const app =
      AddZeroStudy(line, "tradeoffs", "Each choice of the design against its alternative", words.study);
  app->add_option("--layers", words.layers, "Transformer blocks")->capture_default_str();
  app->add_option("--hidden", words.hidden, "Width of the residual stream")->capture_default_str();
  app->add_option("--heads", words.heads, "Attention heads")->capture_default_str();
  app->add_option("--bucket-bytes", words.bucket_bytes, "Size of a gradient bucket (C_B)")
      ->capture_default_str();
  app->add_option("--steps", words.steps, "Steps of each run; the first two are not counted")
      ->capture_default_str()
      ->check(CLI::Range(3, 100000));
  app->add_option("--rounds", words.rounds, "How often each run is made, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
}

Result<TradeoffSettings> SettingsOf(const Words& words) {
  DYNAMICCL_TRY(std::vector<std::string> options, CommonTrainerOptions(words.study));
  const auto number = [](int64_t value) { return std::to_string(value); };
  options.insert(options.end(), {"--layers", number(words.layers), "--hidden", number(words.hidden),
                                 "--heads", number(words.heads), "--sequence", number(words.study.sequence),
                                 "--steps", number(words.steps)});
  return TradeoffSettings{
      .options = std::move(options), .bucket_bytes = words.bucket_bytes, .rounds = words.rounds};
}

}  // namespace

Result<int> ZeroTradeoffs(CommandLine& line) {
  Words words;
  Register(line, words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const TradeoffSettings settings, SettingsOf(words));
  DYNAMICCL_TRY(TrainerRuns runs, OpenTrainerRuns(words.study, line));
  DYNAMICCL_TRY(const auto measured,
                MeasureTradeoffs(runs, settings, [](const std::string& text) { spdlog::info("{}", text); }));
  const std::string header = fmt::format(
      "{} ranks, {} blocks of {}, {} sequences of {}, {}; MiB of rank 0 at its peak; step: median of "
      "{} rounds of {} steps, and the least and most of the rounds\n",
      runs.ranks(), words.layers, words.hidden, words.study.batch, words.study.sequence, words.study.dtype,
      words.rounds, words.steps);
  return PrintStudy(words.study, line, header + TradeoffTable(measured), TradeoffsJson(measured));
}

}  // namespace dynamiccl
