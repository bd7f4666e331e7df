// SPDX-License-Identifier: Apache-2.0
// Measured times from any kind of file, sorted by the machine on which they were taken. Systems are fitted to
// them.
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

// The cells of one machine.
struct TimedSystem {
  std::string name;
  // Ordered by collective, ranks, config and size.
  std::vector<TimedCell> cells;
  // Number of cells for which the simulator has no formula: those of other collectives, of one rank, or of
  // CollNet.
  size_t left_out = 0;
};

// All repeats of one cell.
struct TimedRepeats {
  std::string system;
  // The fields `us` and spread of the cell are not filled.
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

// Collects repeats from any number of files. A cell's time is the lower median of all repeats (NearestRank at
// 0.5), because noise only adds time. Its spread is the logarithm of the ratio between the lower medians of
// the even and of the odd repeats. The origin of a system is the hosts of the run, or the file where nothing
// else is known. Systems with one name but different origins are kept separately, and their origin is
// appended to the name.
class TimedSystems {
 public:
  // Reads a file by its content: a measurement file, a file for which an importer gives measurements
  // (nccl-tests, config tables), or a published table (published_table.h). A trace is an error.
  Status Read(const std::string& path, const TimedFileOptions& options = {});

  // Adds all rows of a file. A topology whose links are stated is a system of its own. Any other system is
  // named after library and machine, or after its own name without the number of ranks and nccl-tests'
  // "in-place".
  void Add(const MeasurementFile& file, const std::string& path);
  // Adds one time in microseconds.
  void AddRepeat(const std::string& system, const std::string& origin, const TimedCell& key, double us);
  // Merges all systems into one called `name`.
  void Merge(const std::string& name);

  // Returns all systems. Cells for which the simulator has no formula are only counted
  // (TimedSystem::left_out).
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

// Returns the systems of these files, or only the system called `only` if that is set. It is an error when
// there is no such system.
Result<std::vector<TimedSystem>> ReadTimedSystems(const std::vector<std::string>& paths,
                                                  const std::string& only);
Result<std::vector<TimedSystem>> SystemsOf(const TimedSystems& collected, const std::string& only);

}  // namespace dynamiccl
