// SPDX-License-Identifier: Apache-2.0
// What a demo found, as the value that demo.json holds and the report shows (schema 1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/timing.h"

namespace dynamiccl {

// One (stage, collective, size) that the evaluated training issued, or a held-out row of a sweep (stage -1).
struct ChoiceRow {
  int stage = -1;
  std::string collective;
  uint64_t bytes = 0;
  std::string topology;
  bool size_held_out = false;      // the agents saw no measurement of this size class
  bool topology_held_out = false;  // nor of this fabric
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

// Step time of the evaluated training under one arm ("default", "ours", "best of sweep").
struct StepTimeRow {
  int stage = 0;
  std::string arm;
  Timing milliseconds;
  std::vector<double> samples_ms;  // median step of each run
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StepTimeRow, stage, arm, milliseconds, samples_ms)

// Losses of an arm against those of the default, step by step.
struct LossRow {
  int stage = 0;
  std::string arm;
  int steps = 0;
  bool bitwise_equal = false;
  double largest_relative_difference = 0;
  double tolerance = 0;
  double first_loss = 0;
  double last_loss = 0;

  bool equal() const { return bitwise_equal || largest_relative_difference <= tolerance; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LossRow, stage, arm, steps, bitwise_equal,
                                                largest_relative_difference, tolerance, first_loss, last_loss)

// What the calls of one stage were taken for: recognised[s] calls as stage s, recognised[4] as unknown.
struct RecognitionRow {
  int true_stage = 0;
  std::vector<int64_t> recognised;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RecognitionRow, true_stage, recognised)

struct FingerprintRow {
  int stage = 0;
  std::string collective;
  double calls_per_step = 0;
  double bytes_per_step = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FingerprintRow, stage, collective, calls_per_step,
                                                bytes_per_step)

// Who made the decisions of the evaluated run.
struct DecisionCount {
  int stage = 0;
  std::string decided_by;
  std::string config;
  int64_t calls = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DecisionCount, stage, decided_by, config, calls)

// One line of a summary of a trace of another tool.
struct ImportedRow {
  std::string source;
  std::string collective;
  int64_t calls = 0;
  uint64_t bytes = 0;
  double recorded_us = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ImportedRow, source, collective, calls, bytes, recorded_us)

struct NamedText {
  std::string name;
  std::string text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NamedText, name, text)

struct DemoResult {
  int schema = 1;
  std::string created;  // ISO 8601, UTC
  bool quick = false;
  std::vector<std::string> findings;  // sentences, wins and losses alike
  std::vector<ChoiceRow> choices;
  std::vector<StepTimeRow> step_times;
  std::vector<LossRow> losses;
  std::vector<RecognitionRow> recognition;
  std::vector<FingerprintRow> fingerprints;
  std::vector<DecisionCount> decisions;
  std::vector<ImportedRow> imported;
  std::vector<NamedText> provenance;  // machine, versions, commands, seeds
  std::vector<std::string> repeated;  // runs that failed once and were started again
  std::vector<NamedText> missing;     // runs that failed twice, and why: the result is without them
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DemoResult, schema, created, quick, findings, choices,
                                                step_times, losses, recognition, fingerprints, decisions,
                                                imported, provenance, repeated, missing)

Result<DemoResult> ReadDemoResult(const std::string& path);
Status WriteDemoResult(const std::string& path, const DemoResult& result);

}  // namespace dynamiccl
