// SPDX-License-Identifier: Apache-2.0
// Shares are printed in percent; regret is relative to the oracle.
#include "agents/evaluation/evaluation_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace dynamiccl::agents {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const ConfidenceInterval& interval) {
  return fmt::format("{:.1f} to {:.1f}", 100 * interval.low, 100 * interval.high);
}

// Explains each column of the regret table and its unit, in the order of the columns.
constexpr char kRegretLegend[] =
    "Regret: the choice's time / the best one's - 1. split: seen in training, or held out from it; who: "
    "which "
    "method chose;\n"
    "keys: number of (topology, collective, size); mean %: mean regret of the keys; interval: 95 % "
    "confidence of "
    "the column before;\n"
    "time %: regret of the keys' total time; p95 %, worst %: regret of the 95th percentile and of the worst "
    "key;\n"
    "speed-up: default's time / the choice's, geometric mean; changed: % of keys whose choice is not the "
    "default;\n"
    ">5 % slower: % of keys that are slower than the default by more than 5 %; surely so: number of them "
    "beyond "
    "noise (99 %);\n"
    "1.3x best: % of keys that take at least 1.3 times the best one's time; probing cost: % of time that "
    "trying "
    "configs costs,\n"
    "and tries per key; run %: regret of all calls, tries included; 20 steps %: slowdown of the slowest 20 "
    "steps "
    "in a row, median\n"
    "and worst of the topologies; clear keys, won %: number of keys whose possible gain is at least 3 times "
    "their noise, and the\n"
    "share of that gain which is won; others slower: keys made slower by more than 3 times their noise, of "
    "the "
    "other keys.\n";

void AppendRegrets(const std::vector<RegretSummary>& regrets, std::string& text) {
  if (regrets.empty()) return;
  text +=
      "Choice of configs: regret against the best of the sweep, picked on one half of the repeats, timed on "
      "the other\n";
  text += fmt::format(
      "{:<18} {:<22} {:>5} {:>8} {:>16} {:>8} {:>16} {:>8} {:>8} {:>9} {:>8} {:>12} {:>10} {:>8} {:>12} "
      "{:>8} {:>14} {:>18} {:>14}\n",
      "split", "who", "keys", "mean %", "interval", "time %", "interval", "p95 %", "worst %", "speed-up",
      "changed", ">5 % slower", "surely so", "1.3x best", "probing cost", "run %", "20 steps %",
      "clear keys, won %", "others slower");
  for (const RegretSummary& r : regrets) {
    text += fmt::format(
        "{:<18} {:<22} {:>5} {:>8.1f} {:>16} {:>8.1f} {:>16} {:>8.1f} {:>8.1f} {:>8.3f}x {:>6.0f} % "
        "{:>10.1f} % {:>10.1f} {:>6.1f} % {:>12} {:>8.1f} {:>14} {:>18} {:>14}\n",
        Name(r.split), r.chooser, r.keys, 100 * r.mean_regret, Text(r.mean_interval), 100 * r.time_regret,
        Text(r.time_interval), 100 * r.p95_regret, 100 * r.worst_regret, r.speed_up, 100 * r.share_changed,
        100 * r.share_worse, r.surely_worse, 100 * r.share_cliffs,
        r.probes_itself ? fmt::format("{:+.1f} % {:.0f}", 100 * r.cost.over_default, r.cost.probes) : "-",
        100 * (r.probes_itself ? r.cost.over_oracle : r.mean_regret),
        r.probes_itself ? fmt::format("{:.0f}, {:.0f}", 100 * r.median_window, 100 * r.cost.worst_window)
                        : "-",
        fmt::format("{}, {:.0f}", r.clear_keys, 100 * r.clear_gain_kept),
        fmt::format("{:.1f} of {}", r.others_slower, r.other_keys));
  }
  text += kRegretLegend;
  text += "\n";
}

std::string Shares(const Recognition& r) {
  const double all = r.calls() == 0 ? 1.0 : static_cast<double>(r.calls());
  return fmt::format("{:>5.1f} {:>5.1f} {:>5.1f}", 100 * r.share_right(),
                     100 * static_cast<double>(r.unknown) / all, 100 * static_cast<double>(r.wrong) / all);
}

void AppendConfusion(const StructureAccuracy& accuracy, std::string& text) {
  text += fmt::format("Stages by {} (rows: true, columns: recognised 0 1 2 3 unknown; calls)\n",
                      accuracy.recogniser);
  for (size_t truth = 0; truth + 1 < kZeroStages; ++truth) {
    text += fmt::format("  stage {}", truth);
    for (const uint64_t calls : accuracy.stage_confusion[truth]) text += fmt::format(" {:>7}", calls);
    text += "\n";
  }
  text +=
      fmt::format("Roles by {} (rows: true; columns: unknown, then as rows; calls)\n", accuracy.recogniser);
  for (size_t truth = 1; truth < kLabelledRoles; ++truth) {
    text += fmt::format("  {:<18}", Name(static_cast<Role>(truth)));
    for (const uint64_t calls : accuracy.role_confusion[truth]) text += fmt::format(" {:>7}", calls);
    text += "\n";
  }
}

void AppendStructures(const std::vector<StructureAccuracy>& structures, std::string& text) {
  if (structures.empty()) return;
  text +=
      "Recognition before each call: % right, unknown, wrong; macro F1 of role, phase, stage after one "
      "step\n";
  text += fmt::format("{:<12} {:<18} {:<18} {:<18} {}\n", "who", "role", "phase", "stage", "macro F1");
  for (const StructureAccuracy& s : structures) {
    const Confusions& judged = s.judged[static_cast<size_t>(JudgedCalls::kAfterOneStep)];
    text +=
        fmt::format("{:<12} {:<18} {:<18} {:<18} {:.3f} {:.3f} {:.3f}\n", s.recogniser, Shares(s.role),
                    Shares(s.phase), Shares(s.stage), judged.role_f1(), judged.phase_f1(), judged.stage_f1());
  }
  for (const StructureAccuracy& s : structures) {
    AppendConfusion(s, text);
    for (const SequenceResult& sequence : s.sequences) {
      text += fmt::format("  {}: stage {}, recognised {}, role {}\n", sequence.name,
                          Name(sequence.true_stage), Name(sequence.recognised_stage), Shares(sequence.role));
    }
  }
}

Json ToJson(const RegretSummary& r) {
  return {{"split", Name(r.split)},
          {"chooser", r.chooser},
          {"keys", r.keys},
          {"seeds", r.seeds},
          {"mean_regret", r.mean_regret},
          {"mean_interval", {r.mean_interval.low, r.mean_interval.high}},
          {"time_regret", r.time_regret},
          {"time_interval", {r.time_interval.low, r.time_interval.high}},
          {"p95_regret", r.p95_regret},
          {"worst_regret", r.worst_regret},
          {"speed_up", r.speed_up},
          {"share_changed", r.share_changed},
          {"share_more_than_5_percent_slower", r.share_worse},
          {"keys_surely_more_than_5_percent_slower", r.surely_worse},
          {"share_1.3_times_the_best", r.share_cliffs},
          {"worst_slowdown", r.worst_slowdown},
          {"probes_a_key", r.cost.probes},
          {"probing_over_default", r.cost.over_default},
          {"run_over_oracle", r.probes_itself ? r.cost.over_oracle : r.mean_regret},
          {"worst_20_steps_over_default", r.cost.worst_window},
          {"median_of_worst_20_steps", r.median_window},
          {"clear_keys", r.clear_keys},
          {"share_of_clear_gain", r.clear_gain_kept},
          {"other_keys", r.other_keys},
          {"other_keys_slower", r.others_slower}};
}

Json ToJson(const Recognition& r) {
  return {{"right", r.right}, {"unknown", r.unknown}, {"wrong", r.wrong}};
}

Json ToJson(const StructureAccuracy& s) {
  Json sequences = Json::array();
  for (const SequenceResult& sequence : s.sequences) {
    sequences.push_back({{"name", sequence.name},
                         {"true_stage", Name(sequence.true_stage)},
                         {"recognised_stage", Name(sequence.recognised_stage)},
                         {"role", ToJson(sequence.role)},
                         {"phase", ToJson(sequence.phase)},
                         {"stage", ToJson(sequence.stage)}});
  }
  const Confusions& judged = s.judged[static_cast<size_t>(JudgedCalls::kAfterOneStep)];
  return {{"recogniser", s.recogniser},
          {"macro_f1_after_one_step",
           {{"role", judged.role_f1()}, {"phase", judged.phase_f1()}, {"stage", judged.stage_f1()}}},
          {"role", ToJson(s.role)},
          {"phase", ToJson(s.phase)},
          {"stage", ToJson(s.stage)},
          {"role_confusion", s.role_confusion},
          {"stage_confusion", s.stage_confusion},
          {"sequences", std::move(sequences)}};
}

}  // namespace

std::string FormatTables(const Evaluation& evaluation) {
  std::string text = fmt::format("policy {}\n\n", evaluation.policy_sha256);
  AppendRegrets(evaluation.regrets, text);
  AppendStructures(evaluation.structures, text);
  return text;
}

std::string FormatJson(const Evaluation& evaluation) {
  Json config = Json::array(), structure = Json::array();
  for (const RegretSummary& regret : evaluation.regrets) config.push_back(ToJson(regret));
  for (const StructureAccuracy& accuracy : evaluation.structures) structure.push_back(ToJson(accuracy));
  const Json json = {{"schema", 1},
                     {"policy_sha256", evaluation.policy_sha256},
                     {"config", std::move(config)},
                     {"structure", std::move(structure)}};
  return json.dump(1) + "\n";
}

}  // namespace dynamiccl::agents
