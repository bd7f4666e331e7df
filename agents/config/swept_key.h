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
  // Median over the repeats with even index. Agents and oracles may use only this median to choose.
  double pick = 0;
  // Median over the repeats with odd index. Only evaluations use it, and the estimate of a cell's noise if
  // the cell has fewer than four repeats (ConfigSample::noise).
  double value = 0;
};

// One measured configuration.
struct SweptConfig {
  CollectiveConfig config;
  SweptTime time;
  // The repeats behind `time.pick`, in microseconds. A baseline that tries configurations may use only these.
  std::vector<float> picks;
  // The repeats behind `time.value`, in microseconds.
  std::vector<float> values;
};

// All that was measured for one collective of one size on one fabric.
struct SweptKey {
  // Index of the key's file among the files that were read together.
  size_t file = 0;
  std::string topology;
  CostModelInput model;
  // The question that the config agent answers for this key. `allowed` holds the algorithms and protocols
  // that the file has for the topology and collective at any size: NCCL offers all of them at every size,
  // even where a sweep with a budget measured only some.
  ConfigQuestion question;
  // Configurations that the sweep forced instead of the library's choice. Each occurs once.
  std::vector<SweptConfig> configs;
  // The library's own choice, if it was measured. Of several rows with it, the first one.
  std::optional<SweptConfig> default_choice;
};

// Returns the keys of all files, in a fixed order. A cell with fewer than two repeats cannot be split and is
// left out. A key without any configuration is left out as well.
std::vector<SweptKey> KeysOf(const std::vector<MeasurementFile>& files);

// Selects the keys that training must not see.
struct HoldOut {
  // Every n-th size class is held out. 0 holds out none.
  int sizes = 0;
  // Names of topologies that are held out. A name that ends in '*' is a prefix.
  std::vector<std::string> topologies;
  // Keys with this number of ranks are held out. 0 holds out none.
  int ranks = 0;

  friend bool operator==(const HoldOut&, const HoldOut&) = default;
};
// True if `hold_out` names the topology.
bool IsHeldOut(const std::string& topology, const HoldOut& hold_out);
// Returns the entries of `hold_out` that no file has: names of topologies, and for example "16 ranks".
std::vector<std::string> NotInFiles(const HoldOut& hold_out, const std::vector<MeasurementFile>& files);
// The part of the data to which a key belongs.
enum class Split { kSeen, kHeldOutSize, kHeldOutRanks, kHeldOutTopology };
// The number of enumerators of Split.
inline constexpr int kSplits = 4;
// The part's name for tables, for example "held-out sizes".
const char* Name(Split split);

// Returns the split to which a key belongs. Size classes are held out by their number, not by their position
// in a file: those with (octave + quarter) mod n == n - 1.
Split SplitOf(const SweptKey& key, const HoldOut& hold_out);

}  // namespace dynamiccl::agents
