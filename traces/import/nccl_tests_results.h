// SPDX-License-Identifier: Apache-2.0
// Rows, contexts and left-out rows of one file of results. Private to the importers of nccl-tests' JSON and
// of tables.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "traces/import/bandwidth_check.h"
#include "traces/import/nccl_tests_rows.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// The file's name without folder and extension.
inline std::string StemOf(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// Counts of rows or times that are left out, by reason, and of those that are kept although their results
// were wrong.
struct LeftOutResults {
  uint64_t empty = 0;    // rows of 0 bytes
  uint64_t untimed = 0;  // rows without a time
  uint64_t wrong = 0;    // kept rows whose results the test found wrong
  uint64_t other = 0;    // rows of tests that are no collectives of NCCL
  uint64_t of_host = 0;  // kept times that are the host's
  BandwidthCheck check;
  bool keeps_contradictory = false;  // true if most times contradict their bandwidths

  // Returns whether to keep a mean time of `bytes` on `ranks` ranks. A time that contradicts its bandwidths
  // is counted, and left out unless keeps_contradictory.
  bool Keeps(const RowTime& time, Collective collective, uint64_t bytes, int32_t ranks) {
    const bool fits = time.FitsSize(bytes) && time.FitsFactor(BusBandwidthFactor(collective, ranks));
    check.checkable += time.CanCheck();
    check.contradictory += !fits;
    return fits || keeps_contradictory;
  }

  // The error of a file without a usable time; `error` names the file.
  tl::unexpected<Error> NoTimes(const tl::unexpected<Error>& error) const {
    Error with_notes = error.value();
    if (const auto notes = Notes(); !notes.empty())
      with_notes.message += fmt::format(": {}", fmt::join(notes, "; "));
    if (check.contradictory > 0)
      with_notes.hint = "compare the file's sizes, ranks and bandwidths (in GB/s) with the output of the run";
    return tl::unexpected(with_notes);
  }

  std::vector<std::string> Notes() const {
    std::vector<std::string> notes;
    const auto note = [&](uint64_t count, std::string_view what) {
      if (count > 0) notes.push_back(fmt::format("{} {}", count, what));
    };
    note(empty, "rows of 0 bytes: left out");
    note(untimed, "times that are not there: left out");
    note(wrong, "times whose results were wrong (#wrong above 0): kept");
    note(of_host, kHostTimes);
    note(check.contradictory, keeps_contradictory
                                  ? "times that do not fit their size, ranks and bandwidths: kept, because "
                                    "they are the most, so that "
                                    "the bandwidths may have another unit or formula"
                                  : "times that do not fit their size, ranks and bandwidths: left out");
    note(other, "rows of tests that are no collectives of NCCL: left out");
    return notes;
  }
};

// Rows and contexts of one file.
class TestResults {
 public:
  explicit TestResults(std::string source) { file_.library = std::move(source); }

  MeasurementFile& file() { return file_; }

  // Returns the times of a topology, collective and size, to which the caller appends a new one. The
  // topology's ranks and nodes are those of the first call.
  std::vector<float>& TimesOf(std::string_view topology, int32_t ranks, int32_t nodes, Collective collective,
                              uint64_t bytes) {
    auto place = topology_of_.find(topology);
    if (place == topology_of_.end()) {
      place = topology_of_.emplace(topology, file_.contexts.size()).first;
      file_.contexts.push_back({.topology = place->first, .model = {}});
      file_.contexts.back().model.fabric.n_ranks = ranks;
      file_.contexts.back().model.fabric.n_nodes = nodes;
    }
    const auto [row, is_new] =
        row_of_.try_emplace(std::tuple(place->second, collective, bytes), file_.rows.size());
    if (is_new) {
      file_.rows.push_back({.topology = place->first,
                            .collective = collective,
                            .bytes = bytes,
                            .config = kLeaveNcclAlone,
                            .is_default = is_default_,
                            .microseconds = {}});
    }
    return file_.rows[row->second].microseconds;
  }
  // After this call, rows are not marked as NCCL's own choice.
  void SetForced() { is_default_ = false; }

  // Returns the result, with notes on what the file does not contain.
  Imported Finish(const LeftOutResults& left_out) {
    Imported imported;
    const uint64_t rows = file_.rows.size();
    imported.unfilled = {{"algorithm", rows, "unknown"},
                         {"protocol", rows, "unknown"},
                         {"channels", rows, "unknown"},
                         {"fabric", file_.contexts.size(), "zeros"}};
    imported.notes = left_out.Notes();
    imported.measurements = std::move(file_);
    return imported;
  }

 private:
  MeasurementFile file_;
  bool is_default_ = true;
  std::map<std::string, size_t, std::less<>> topology_of_;  // topology -> index of its context
  std::map<std::tuple<size_t, Collective, uint64_t>, size_t> row_of_;
};

// True if the number is a plausible time: from 0 to 11 days, in microseconds.
inline bool IsTestTime(double microseconds) {
  return std::isfinite(microseconds) && microseconds >= 0 && microseconds < 1e12;
}

}  // namespace dynamiccl
