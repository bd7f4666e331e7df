// SPDX-License-Identifier: Apache-2.0
// Measurement files sorted by key: the times of each configuration for one collective of one size on one
// fabric. Repeats are split into two halves. Agents and oracles choose by one half and are evaluated on the
// other, so that lucky times in the first half bring no advantage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/policy/config_features.h"
#include "traces/format/measurement.h"

namespace dynamiccl::agents {

// Medians in microseconds.
struct SweptTime {
  // Over the repeats with even index: for training and oracles.
  double pick = 0;
  // Over the repeats with odd index: for evaluation only.
  double value = 0;
};

// One measured configuration.
struct SweptConfig {
  CollectiveConfig config;
  SweptTime time;
  // The repeats behind `pick`, in microseconds; the only ones that a probing baseline may use.
  std::vector<float> picks;
  // The repeats behind `value`.
  std::vector<float> values;
};

// All that was measured for one collective of one size on one fabric.
struct SweptKey {
  // Index of the key's file among the files that were read together.
  size_t file = 0;
  std::string topology;
  CostModelInput model;
  // The question to the config agent; `allowed` has the algorithms and protocols that were measured.
  ConfigQuestion question;
  // Forced configurations, each once.
  std::vector<SweptConfig> configs;
  // The library's own choice, if it was measured.
  std::optional<SweptConfig> default_choice;
};

// The keys of all files, in a fixed order. Cells with fewer than two repeats cannot be split and are left
// out, as are keys without any configuration.
std::vector<SweptKey> KeysOf(const std::vector<MeasurementFile>& files);

// Selects the keys that training must not see.
struct HoldOut {
  // Every n-th size class; 0: none.
  int sizes = 0;
  // Whole topologies by name; a name that ends in '*' is a prefix.
  std::vector<std::string> topologies;
  // Keys with this number of ranks; 0: none.
  int ranks = 0;
};
// The part of the data to which a key belongs.
enum class Split { kSeen, kHeldOutSize, kHeldOutRanks, kHeldOutTopology };
// The number of enumerators of Split.
inline constexpr int kSplits = 4;
// The part's name for tables, for example "held-out sizes".
const char* Name(Split split);

// The split that a key belongs to. A size class is held out by its own number and not by its position in a
// file: (octave + quarter) mod n == n - 1.
Split SplitOf(const SweptKey& key, const HoldOut& hold_out);

}  // namespace dynamiccl::agents
