// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab tradeoffs`: measures each choice of the trainer's design against its alternative.
#include <spdlog/spdlog.h>

#include "studies/commands/trainer_study.h"
#include "studies/lab_commands.h"
#include "studies/zero/tradeoffs.h"
#include "tools/exit_code.h"

namespace dynamiccl {
namespace {

struct TradeoffsCommandOptions {
  TrainerStudyOptions study;
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t steps = 20;
  std::string bucket_bytes = "256K";
  int rounds = 5;
};

void RegisterTradeoffsOptions(CommandLine& line, TradeoffsCommandOptions& given) {
  CLI::App& app = line.app();
  RegisterTrainerStudy(app, given.study);
  app.add_option("--layers", given.layers, "Transformer blocks")->capture_default_str();
  app.add_option("--hidden", given.hidden, "Width of the residual stream")->capture_default_str();
  app.add_option("--heads", given.heads, "Attention heads")->capture_default_str();
  app.add_option("--bucket-bytes", given.bucket_bytes, "Size of a gradient bucket (C_B)")
      ->capture_default_str();
  app.add_option("--steps", given.steps, "Steps of each run; the first two are not counted")
      ->capture_default_str()
      ->check(CLI::Range(3, 100000));
  app.add_option("--rounds", given.rounds, "How often each run is made, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
}

Result<TradeoffSettings> SettingsOf(const TradeoffsCommandOptions& given) {
  DYNAMICCL_TRY(std::vector<std::string> options, CommonTrainerOptions(given.study));
  const auto number = [](int64_t value) { return std::to_string(value); };
  options.insert(options.end(), {"--layers", number(given.layers), "--hidden", number(given.hidden),
                                 "--heads", number(given.heads), "--sequence", number(given.study.sequence),
                                 "--steps", number(given.steps)});
  return TradeoffSettings{
      .options = std::move(options), .bucket_bytes = given.bucket_bytes, .rounds = given.rounds};
}

}  // namespace

Result<int> TradeoffsCommand(CommandLine& line) {
  TradeoffsCommandOptions given;
  RegisterTradeoffsOptions(line, given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const TradeoffSettings settings, SettingsOf(given));
  DYNAMICCL_TRY(TrainerRuns runs, OpenTrainerRuns(given.study, line));
  DYNAMICCL_TRY(const auto measured,
                MeasureTradeoffs(runs, settings, [](const std::string& text) { spdlog::info("{}", text); }));
  const std::string header = fmt::format(
      "{} ranks, {} blocks of {}, {} sequences of {}, {}; MiB of rank 0 at its peak; step: median of "
      "{} rounds of {} steps, and the least and most of the rounds\n",
      runs.ranks(), given.layers, given.hidden, given.study.batch, given.study.sequence, given.study.dtype,
      given.rounds, given.steps);
  return PrintStudy(given.study, line, header + TradeoffTable(measured), TradeoffsJson(measured));
}

}  // namespace dynamiccl
