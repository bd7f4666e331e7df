// SPDX-License-Identifier: Apache-2.0
// Measurement files by key: for one collective of one size on one fabric, what each config cost. The repeats
// are split into halves: agents and oracles pick by one and are valued by the other, so that luck in the
// first earns nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/policy/config_features.h"
#include "traces/format/measurement.h"

namespace dynamiccl::agents {

// Medians in microseconds.
struct SweptTime {
  double pick = 0;   // of the repeats with even index: training, oracles
  double value = 0;  // of those with odd index: evaluation only
};

struct SweptConfig {
  CollectiveConfig config;
  SweptTime time;
  std::vector<float> picks;   // the repeats that `pick` is the median of: what probing sees
  std::vector<float> values;  // those of `value`
};

struct SweptKey {
  size_t file = 0;  // its place among the files that were read together
  std::string topology;
  CostModelInput model;
  ConfigQuestion question;                    // allowed: what was measured
  std::vector<SweptConfig> configs;           // forced ones, each config once
  std::optional<SweptConfig> default_choice;  // the library's own
};

// Cells with fewer than two repeats cannot be split and are left out, as are keys without any config.
std::vector<SweptKey> KeysOf(const std::vector<MeasurementFile>& files);

// What training must not see.
struct HoldOut {
  int sizes = 0;                        // every n-th size class; 0: none
  std::vector<std::string> topologies;  // whole; a name that ends in '*' is a beginning
  int ranks = 0;                        // this number of ranks; 0: none
};
enum class Split { kSeen, kHeldOutSize, kHeldOutRanks, kHeldOutTopology };
inline constexpr int kSplits = 4;
const char* Name(Split split);

// A size class is held out by its own number, not by its place in a file: (octave + quarter) mod n == n - 1.
Split SplitOf(const SweptKey& key, const HoldOut& hold_out);

}  // namespace dynamiccl::agents
