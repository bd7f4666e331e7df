// SPDX-License-Identifier: Apache-2.0
// Measured times of whatever file, sorted by the machine that they were taken on: what systems are fitted to.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/timed_cell.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct TimedSystem {
  std::string name;
  std::vector<TimedCell> cells;  // ordered by collective, ranks, config and size
  // Cells without a formula: of other collectives, of one rank, of CollNet.
  size_t left_out = 0;
};

struct TimedRepeats {
  std::string system;
  TimedCell cell;  // without time and spread
  std::vector<double> us;
};

// Collects repeats from any number of files. A cell's time is the lower median of all repeats (NearestRank
// at 0.5): noise adds.
// Its spread is the logarithm between the lower medians of the even and the odd ones.
class TimedSystems {
 public:
  // Measurement files, files that an importer gives measurements for (nccl-tests, config tables), and
  // published tables (published_table.h); by content.
  Status Read(const std::string& path);

  // A topology whose links are stated is a system of its own. Others are named by library and machine, or by
  // their own name without the number of ranks and nccl-tests' "in-place".
  void Add(const MeasurementFile& file);
  void AddRepeat(const std::string& system, const TimedCell& key, double us);

  std::vector<TimedSystem> Take() const;
  // Everything that was read, whether there is a formula for it or not; repeats in the order of reading.
  std::vector<TimedRepeats> Repeats() const;

 private:
  using Key = std::tuple<Collective, int, Algorithm, Protocol, uint8_t, uint64_t, int>;
  std::map<std::string, std::map<Key, std::vector<double>>> systems_;
};

// The systems of these files, or the one named `only` where it is not empty. No system is an error.
Result<std::vector<TimedSystem>> ReadTimedSystems(const std::vector<std::string>& paths,
                                                  const std::string& only);

}  // namespace dynamiccl
