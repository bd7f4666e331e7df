// SPDX-License-Identifier: Apache-2.0
// Collects measured times of collectives from any kind of file, grouped by the machine on which they were
// measured. `dynamiccl calibrate` fits a system to the times of one machine. A system is the simulator's
// description of a machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/timed_cell.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// The measured times of one machine. A cell is one collective, config, size and number of ranks, with its
// time.
struct TimedSystem {
  std::string name;
  // Ordered by collective, ranks, config and size.
  std::vector<TimedCell> cells;
  // Number of cells for which the simulator has no formula: collectives without a formula, communicators of
  // one rank, and the algorithms CollNet.
  size_t left_out = 0;
};

// All measured times of one cell, that is of one collective, config, size and number of ranks.
struct TimedRepeats {
  std::string system;
  // The cell's fields `us` and `log_spread` are not set; `us` below has the times.
  TimedCell cell;
  std::vector<double> us;
};

// Facts that the user states about files which do not contain them.
struct TimedFileOptions {
  // Name of the importer that reads the files; empty: it is recognised by their content.
  std::string format;
  // The collective of files that do not name it.
  std::optional<Collective> collective;
};

// Collects repeated measurements from any number of files. A cell's time is the lower median of its repeats
// (NearestRank at 0.5), because noise only adds time. The cell's spread is the logarithm of the ratio between
// the lower medians of the even and of the odd repeats. The origin of a system is the hosts on which it was
// measured, or the file if no hosts are known. Systems with one name but different origins are kept
// separately; their origin is then appended to their name.
class TimedSystems {
 public:
  // Reads a file by its content: a measurement file, a file for which an importer gives measurements
  // (nccl-tests, config tables), or a published table (published_table.h). A trace is an error.
  Status Read(const std::string& path, const TimedFileOptions& options = {});

  // Adds all rows of a file. Where the file states the speed of the links, its topology is the system. Any
  // other system is named after library and machine, or, if the machine is unknown, after the topology's name
  // without the number of ranks and without " in-place" of nccl-tests.
  void Add(const MeasurementFile& file, const std::string& path);
  // Adds one time in microseconds.
  void AddRepeat(const std::string& system, const std::string& origin, const TimedCell& key, double us);
  // Merges all systems into one called `name`.
  void Merge(const std::string& name);

  // Returns all systems. TimedSystem::left_out counts the cells for which the simulator has no formula; these
  // cells are not returned.
  std::vector<TimedSystem> Take() const;
  // Each note names a file and says what an importer left out of that file, and why.
  const std::vector<std::string>& notes() const { return notes_; }
  // Returns all repeats that were read, also those for which the simulator has no formula, in the order of
  // reading.
  std::vector<TimedRepeats> Repeats() const;

 private:
  using Key = std::tuple<Collective, int, Algorithm, Protocol, uint8_t, uint64_t, int>;
  using Cells = std::map<Key, std::vector<double>>;
  // The name that Take and Repeats give to a system.
  std::string NameOf(const std::pair<std::string, std::string>& system) const;

  // The key is a system's name and origin.
  std::map<std::pair<std::string, std::string>, Cells> systems_;
  std::vector<std::string> notes_;
};

// Returns all systems, or only the one called `only` if that is set. It is an error when there is no such
// system.
Result<std::vector<TimedSystem>> SystemsOf(const TimedSystems& collected, const std::string& only);

}  // namespace dynamiccl
