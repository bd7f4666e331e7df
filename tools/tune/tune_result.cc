// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/tune_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "tools/ab/rule_settings.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

constexpr const char* kSettingsFile = "tuned.settings.json";
constexpr const char* kRulesFile = "tuned.rules.toml";

const Candidate& Best(const TuneResult& result) {
  return result.tried[result.best].candidate;
}

double StepMs(const TriedCandidate& tried) {
  std::vector<double> times;
  for (const auto& [turn, step_ms] : tried.step_ms) times.push_back(step_ms);
  return Median(times);
}

std::string IntervalText(const TunedRatio& ratio) {
  if (!std::isfinite(ratio.interval.low)) return "";
  if (ratio.turns == 0 || ratio.interval.low == 0) return "";
  return fmt::format("{:.3f} to {:.3f}", ratio.interval.low, ratio.interval.high);
}

// True if a setting may take the sums of gradients in another order. A static graph does so because its
// buckets are rebuilt a step later, and Megatron-LM's overlap because it makes several buckets of one.
bool MovesSums(const std::string& setting) {
  constexpr const char* kMoves[] = {
      "ddp.bucket_cap_mb",      "ddp.first_bucket_mb",      "ddp.static_graph",
      "fsdp2.modules_per_unit", "fsdp2.shard_ranks",        "deepspeed.reduce_bucket_size",
      "zero.bucket_bytes",      "megatron.ddp_bucket_size", "megatron.overlap_grad_reduce"};
  return std::ranges::find(kMoves, setting) != std::end(kMoves);
}

// Says whether the best candidate may change the order of sums, and with it the losses. With two ranks a sum
// has only one order.
std::string NumericsText(const TuneResult& result) {
  const Candidate& best = Best(result);
  const bool moves_sums =
      std::ranges::any_of(best.values, [](const auto& value) { return MovesSums(value.first); }) ||
      !best.config.empty();
  if (!moves_sums || result.ranks <= 2) return "the losses stay the same to the bit";
  return "gradients change within the order of their sums, as with another number of ranks";
}

std::vector<size_t> ByRatio(const TuneResult& result) {
  std::vector<size_t> order(result.tried.size() - 1);
  std::iota(order.begin(), order.end(), size_t{1});
  std::ranges::stable_sort(
      order, {}, [&](size_t i) { return std::pair(result.ratios[i].turns == 0, result.ratios[i].ratio); });
  return order;
}

std::string PredictedText(const Candidate& candidate) {
  return candidate.predicted ? fmt::format("{:.3f}", *candidate.predicted) : "";
}

// Says how far the predictions of settings were off. The gain of a config is not predicted, and that of a
// combination is computed from measured gains.
std::string PredictionText(const TuneResult& result) {
  std::vector<double> errors;
  for (size_t i = 1; i < result.tried.size(); ++i) {
    const Candidate& candidate = result.tried[i].candidate;
    if (candidate.predicted && candidate.config.empty() && result.ratios[i].turns > 0)
      errors.push_back(100 * std::abs(*candidate.predicted / result.ratios[i].ratio - 1));
  }
  if (errors.empty()) return "";
  return fmt::format("predicted by the simulator from the first start: off by {:.1f} % in the median of {}\n",
                     Median(errors), errors.size());
}

std::string Table(const TuneResult& result) {
  std::string text = fmt::format(
      "   step ms   ratio  95 % interval   turns  predicted  setting\n{:10.2f}{:31}{:11}  default\n",
      result.OwnStepMs(), result.tried.front().step_ms.size(), "");
  for (const size_t i : ByRatio(result)) {
    const TriedCandidate& tried = result.tried[i];
    const std::string why = tried.given_up.empty() ? "" : ": " + tried.given_up;
    const std::string predicted = PredictedText(tried.candidate);
    if (result.ratios[i].turns == 0)
      text += fmt::format("{:>10}{:31}{:>11}  {}{}\n", "", 0, predicted, tried.candidate.Name(), why);
    else
      text += fmt::format("{:10.2f}{:8.3f}  {:14}{:7}{:>11}  {}{}\n", StepMs(tried), result.ratios[i].ratio,
                          IntervalText(result.ratios[i]), result.ratios[i].turns, predicted,
                          tried.candidate.Name(), why);
  }
  for (const Candidate& candidate : result.not_tried)
    text += fmt::format("{:>41}{:>11}  {}: {}\n", "not tried", PredictedText(candidate), candidate.Name(),
                        candidate.not_tried);
  return text + PredictionText(result);
}

std::string NothingText(const TuneResult& result) {
  if (result.needed_s > 0)
    return fmt::format(
        "Nothing is proved: the budget of {:.0f} s ended first. The same command goes on with --budget "
        "{:.0f}s "
        "or more.\n",
        result.budget_s, std::ceil(result.needed_s));
  if (result.tried.size() == 1) return "Nothing was tried beside the job as it is.\n";
  if (std::all_of(result.tried.begin() + 1, result.tried.end(),
                  [](const TriedCandidate& tried) { return tried.step_ms.empty(); }))
    return "Nothing was compared: each setting was given up before it could be timed; its row says why.\n";
  return "Nothing to win: no setting that was tried makes a step shorter by 0.5 % or more for certain.\n";
}

// Says where the user writes the lines of LinesForScript.
const char* PlaceOf(Framework framework) {
  if (framework == Framework::kTrainer) return "Or as options:";
  if (framework == Framework::kMegatron) return "Or as flags (Megatron-LM core_v0.8.0 to core_v0.19.0):";
  return framework == Framework::kDeepSpeed ? "Or in DeepSpeed's configuration:" : "Or in the script:";
}

std::string Indented(const std::string& lines) {
  std::string text;
  std::istringstream input(lines);
  for (std::string line; std::getline(input, line);) text += "  " + line + "\n";
  return text;
}

// Returns the lines for the user, under a heading. Megatron-LM wraps modules for FSDP2 by itself, so its
// users set a flag. Only one setting of FSDP2 has a flag.
std::string LinesUnderHeading(const TuneResult& result) {
  const FrameworkValues& values = Best(result).values;
  const bool fsdp2 = result.megatron && result.framework == Framework::kFsdp2;
  if (fsdp2 && values == FrameworkValues{{"fsdp2.reshard_after_forward", false}})
    return "Or as a flag (Megatron-LM core_v0.13.0 or later):\n  --torch-fsdp2-no-reshard-after-forward\n";
  const std::string lines = LinesForScript(values);
  return lines.empty() ? "" : std::string(PlaceOf(result.framework)) + "\n" + Indented(lines);
}

std::string WinText(const TuneResult& result, const std::string& folder) {
  const Candidate& best = Best(result);
  const TunedRatio& ratio = result.ratios[result.best];
  std::string text = fmt::format(
      "now   {:.2f} ms a step, median of {} runs\nbest  {:.2f} ms with {}: {:.3f} of it ({}), {} turns\n",
      result.OwnStepMs(), result.tried.front().step_ms.size(), StepMs(result.tried[result.best]), best.Name(),
      ratio.ratio, IntervalText(ratio), ratio.turns);
  if (!result.seen[result.best].empty()) text += "seen  " + result.seen[result.best] + "\n";
  if (!best.remark.empty()) text += "cost  " + best.remark + "\n";
  text += "sums  " + NumericsText(result) + "\n\nWithout an edit of the script:\n";
  text += fmt::format("  dynamiccl run --settings {}/{} -- ...\n", folder, kSettingsFile);
  const std::string lines = LinesUnderHeading(result);
  text += lines;
  if (!best.config.empty())
    text += fmt::format("{} DYNAMICCL_RULES={}/{}\n", lines.empty() ? "Or by" : "with", folder, kRulesFile);
  return text;
}

Json PredictedJson(const Candidate& candidate) {
  return candidate.predicted ? Json(*candidate.predicted) : Json();
}

Json NotTriedJson(const TuneResult& result) {
  Json rows = Json::array();
  for (const Candidate& candidate : result.not_tried)
    rows.push_back({{"setting", candidate.Name()},
                    {"predicted", PredictedJson(candidate)},
                    {"why", candidate.not_tried}});
  return rows;
}

Json TriedJson(const TuneResult& result, size_t i) {
  const TriedCandidate& tried = result.tried[i];
  const TunedRatio& ratio = result.ratios[i];
  const bool has_interval = std::isfinite(ratio.interval.high);
  Json times = Json::array();
  for (const auto& [turn, step_ms] : tried.step_ms) times.push_back({{"turn", turn}, {"step_ms", step_ms}});
  return {
      {"setting", tried.candidate.Name()},
      {"ratio", ratio.turns == 0 ? Json() : Json(ratio.ratio)},
      {"interval", has_interval && ratio.turns > 0 ? Json{ratio.interval.low, ratio.interval.high} : Json()},
      {"predicted", PredictedJson(tried.candidate)},
      {"turns", times},
      {"given_up", tried.given_up},
      {"seen", result.seen[i]}};
}

}  // namespace

Status WriteTuned(const TuneResult& result, const std::string& folder) {
  const Candidate& best = Best(result);
  FrameworkSettings settings{.values = best.values};
  const std::string rules_path = folder + "/" + kRulesFile;
  if (best.config.empty()) {
    std::error_code ignored;
    std::filesystem::remove(rules_path, ignored);
  } else {
    DYNAMICCL_TRY(const std::string rules, RulesOfSetting(best.config));
    DYNAMICCL_CHECK_OK(WriteTextFile(rules_path, rules));
    settings.rules = kRulesFile;
  }
  settings.origin = {{"dynamiccl", kVersion},
                     {"command", result.command},
                     {"framework", Name(result.framework)},
                     {"ranks", result.ranks},
                     {"ratio", result.best == 0 ? Json() : Json(result.ratios[result.best].ratio)}};
  return WriteTextFile(folder + "/" + kSettingsFile, FrameworkSettingsText(settings));
}

std::string Describe(const TuneResult& result, const std::string& folder) {
  std::string text = fmt::format("{} on {} ranks, {} starts: {}\n", Name(result.framework), result.ranks,
                                 result.starts, result.calls);
  if (!result.job.empty()) text += "job   " + result.job + "\n";
  text += (result.best == 0 ? NothingText(result) : WinText(result, folder)) + "\n" + Table(result);
  for (const std::string& note : result.notes) text += note + "\n";
  return text;
}

Json ToJson(const TuneResult& result) {
  Json tried = Json::array();
  for (size_t i = 0; i < result.tried.size(); ++i) tried.push_back(TriedJson(result, i));
  return {{"schema", 1},
          {"version", kVersion},
          {"command", result.command},
          {"framework", Name(result.framework)},
          {"ranks", result.ranks},
          {"calls", result.calls},
          {"job", result.job},
          {"step_ms", result.OwnStepMs()},
          {"best", result.best == 0 ? Json() : Json(Best(result).Name())},
          {"starts", result.starts},
          {"budget_ended", result.needed_s > 0},
          {"tried", tried},
          {"not_tried", NotTriedJson(result)},
          {"prediction_error", kPredictionError},
          {"notes", result.notes}};
}

}  // namespace dynamiccl
