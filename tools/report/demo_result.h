// SPDX-License-Identifier: Apache-2.0
// The findings of a demo as one value, which demo.json holds and the report shows (schema 1). The macros
// after each struct make it readable from and writable to JSON; a field that is missing in a file keeps its
// default.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/timing.h"

namespace dynamiccl {

// One (stage, collective, size) of the evaluated training, or a held-out row of a sweep (stage -1), with the
// times of three configs: NCCL's default, the policy's choice ("ours") and the best of the sweep.
struct ChoiceRow {
  int stage = -1;
  std::string collective;
  uint64_t bytes = 0;
  std::string topology;
  // The agents saw no measurement of this size class.
  bool size_held_out = false;
  // The agents saw no measurement of this fabric.
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

// Step time of the evaluated training under one arm: "default", "ours" or "best of sweep". The arms took
// turns of a few steps within the same starts.
struct StepTimeRow {
  int stage = 0;
  std::string arm;
  Timing milliseconds;
  // Mean step time of each turn.
  std::vector<double> samples_ms;
  // Step time divided by the default's, compared within rounds; 0: not known.
  double ratio = 0;
  // The ratio's 95 % interval; both are 0 where fewer than six rounds were compared.
  double low = 0;
  double high = 0;

  // Whether the arm's step time clearly differs from the default's: the whole interval lies on one side of 1.
  bool differs() const { return high > 0 && (low > 1 || high < 1); }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StepTimeRow, stage, arm, milliseconds, samples_ms, ratio, low,
                                                high)

// Losses of an arm compared with those of the default, step by step. A collective that sums in another order
// gives slightly other losses, hence the tolerance.
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

  // Equal bit by bit, or within the tolerance at every step.
  bool equal() const { return bitwise_equal || largest_relative_difference <= tolerance; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LossRow, stage, arm, steps, bitwise_equal,
                                                largest_relative_difference, tolerance, first_loss, last_loss)

// A whole run of the trainer on one fabric. The arms are "default", "adaptive" without prior knowledge,
// "adaptive again" with the site store that "adaptive" left, "one channel" for all calls, and "default
// again".
struct WholeRunRow {
  std::string fabric;
  std::string arm;
  int steps = 0;
  double mean_ms = 0;  // mean time of a step; the first five are left out
  double end_ms = 0;   // median of the last fifth of the steps
  // Medians of ten steps each, from the first one on.
  std::vector<double> curve_ms;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WholeRunRow, fabric, arm, steps, mean_ms, end_ms, curve_ms)

// Counts how the calls of one stage were recognised: recognised[s] calls as stage s, recognised[4] as
// unknown.
struct RecognitionRow {
  int true_stage = 0;
  std::vector<int64_t> recognised;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RecognitionRow, true_stage, recognised)

// Calls and bytes of one collective in one step of a stage.
struct FingerprintRow {
  int stage = 0;
  std::string collective;
  double calls_per_step = 0;
  double bytes_per_step = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FingerprintRow, stage, collective, calls_per_step,
                                                bytes_per_step)

// Number of calls of the evaluated run that had this config from this decider.
struct DecisionCount {
  int stage = 0;
  std::string decided_by;
  std::string config;
  int64_t calls = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DecisionCount, stage, decided_by, config, calls)

// One collective of an imported trace of another tool.
struct ImportedRow {
  std::string source;
  std::string collective;
  int64_t calls = 0;
  uint64_t bytes = 0;
  double recorded_us = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ImportedRow, source, collective, calls, bytes, recorded_us)

// A fact about the origin of the numbers, such as ("machine", "AMD EPYC 7B13, 2 cores").
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
  // Sentences for the reader, about gains and losses alike.
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
  // Runs that failed twice, each with the error; the result is without them.
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
