// SPDX-License-Identifier: Apache-2.0
// The result of a demo, which demo.json holds and the report shows (schema 1). The macro after each struct
// makes the struct readable from and writable to JSON; a field that is missing in a file keeps its default.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/timing.h"

namespace dynamiccl {

// The times of three configs for one collective and size: NCCL's default, the policy's choice ("ours") and
// the best of the sweep. The call is one of the evaluated training (ZeRO stage 0 to 3) or one that only the
// sweep made (stage -1).
struct ChoiceRow {
  int stage = -1;
  std::string collective;
  uint64_t bytes = 0;
  std::string topology;
  // True: the agents saw no measurement of this size class in training.
  bool size_held_out = false;
  // True: the agents saw no measurement of this fabric in training.
  bool topology_held_out = false;
  double calls_per_step = 0;
  std::string default_config;
  std::string our_config;
  std::string best_config;
  Timing default_us;
  Timing our_us;
  Timing best_us;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ChoiceRow, stage, collective, bytes, topology, size_held_out,
                                                topology_held_out, calls_per_step, default_config, our_config,
                                                best_config, default_us, our_us, best_us)

// Step time of the evaluated training with one setting, called arm: "default", "ours" or "best of sweep". In
// each start of the job the three arms alternate every few steps.
struct StepTimeRow {
  int stage = 0;
  std::string arm;
  Timing milliseconds;
  // Mean step time in milliseconds of each turn, the few consecutive steps that an arm gets.
  std::vector<double> samples_ms;
  // Step time divided by that of the default arm; 0: not known. It is compared within rounds, in which every
  // arm has one turn of a few steps.
  double ratio = 0;
  // The ratio's 95 % interval. Both ends are 0 if fewer than six rounds (one turn of every arm) were
  // compared.
  double low = 0;
  double high = 0;

  // True if this arm's step time clearly differs from the default's: the whole interval lies on one side of
  // 1.
  bool differs() const { return high > 0 && (low > 1 || high < 1); }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StepTimeRow, stage, arm, milliseconds, samples_ms, ratio, low,
                                                high)

// Losses of a training run with one setting (arm), compared with the default's losses step by step. A
// collective that sums in another order gives slightly different losses, so a tolerance applies.
struct LossRow {
  int stage = 0;
  std::string arm;
  int steps = 0;
  bool bitwise_equal = false;
  // Largest |loss - default's loss| of any step, relative to the default's.
  double largest_relative_difference = 0;
  double tolerance = 0;
  double first_loss = 0;
  double last_loss = 0;

  // True if the losses equal the default's bit by bit, or within the tolerance at every step.
  bool equal() const { return bitwise_equal || largest_relative_difference <= tolerance; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LossRow, stage, arm, steps, bitwise_equal,
                                                largest_relative_difference, tolerance, first_loss, last_loss)

// A run of the trainer on one fabric with one setting (arm) from beginning to end. The arms are "default",
// "adaptive" without prior knowledge, "adaptive again" with the site store that "adaptive" left, "one
// channel" for all calls, and "default again".
struct WholeRunRow {
  std::string fabric;
  std::string arm;
  int steps = 0;
  double mean_ms = 0;  // mean time of a step; the first five are left out
  double end_ms = 0;   // median of the last fifth of the steps
  // Step times in milliseconds over the run: each value is the median of ten consecutive steps.
  std::vector<double> curve_ms;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WholeRunRow, fabric, arm, steps, mean_ms, end_ms, curve_ms)

// Counts how the calls of one ZeRO stage were recognised: recognised[s] calls as stage s, recognised[4] as
// unknown.
struct RecognitionRow {
  int true_stage = 0;
  std::vector<int64_t> recognised;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RecognitionRow, true_stage, recognised)

// Calls and bytes of one collective in one training step of a ZeRO stage.
struct FingerprintRow {
  int stage = 0;
  std::string collective;
  double calls_per_step = 0;
  double bytes_per_step = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FingerprintRow, stage, collective, calls_per_step,
                                                bytes_per_step)

// Number of calls of the evaluated run that got this config from this decider (policy, rule, user and so on).
struct DecisionCount {
  int stage = 0;
  std::string decided_by;
  std::string config;
  int64_t calls = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DecisionCount, stage, decided_by, config, calls)

// Counts of one collective in a trace that was imported from another tool.
struct ImportedRow {
  std::string source;
  std::string collective;
  int64_t calls = 0;
  uint64_t bytes = 0;
  double recorded_us = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ImportedRow, source, collective, calls, bytes, recorded_us)

// A named fact about where the numbers come from, such as ("machine", "AMD EPYC 7B13, 2 cores").
struct NamedText {
  std::string name;
  std::string text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NamedText, name, text)

// Everything that a demo found. `dynamiccl demo` fills it step by step and writes it; `dynamiccl report`
// reads it.
struct DemoResult {
  int schema = 1;
  // Time of creation in ISO 8601, UTC.
  std::string created;
  bool quick = false;
  // Sentences for the reader about what the demo found, gains and losses alike.
  std::vector<std::string> findings;
  std::vector<ChoiceRow> choices;
  std::vector<StepTimeRow> step_times;
  std::vector<LossRow> losses;
  std::vector<WholeRunRow> whole_runs;
  std::vector<RecognitionRow> recognition;
  std::vector<FingerprintRow> fingerprints;
  std::vector<DecisionCount> decisions;
  std::vector<ImportedRow> imported;
  // Machine, versions, commands and seeds.
  std::vector<NamedText> provenance;
  // Labels of the runs that failed once and were started again.
  std::vector<std::string> repeated;
  // Runs that failed twice, each with the error. The result lacks their numbers.
  std::vector<NamedText> missing;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DemoResult, schema, created, quick, findings, choices,
                                                step_times, losses, whole_runs, recognition, fingerprints,
                                                decisions, imported, provenance, repeated, missing)

// Reads demo.json. A file that is not JSON or not of schema 1 is an error (kCorrupt).
Result<DemoResult> ReadDemoResult(const std::string& path);
// Writes demo.json. The file is replaced in one step.
Status WriteDemoResult(const std::string& path, const DemoResult& result);

}  // namespace dynamiccl
