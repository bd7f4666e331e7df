// SPDX-License-Identifier: Apache-2.0
// The section of one rank, built from an importer's calls in order of issue: communicators and calls get the
// numbers that a recorder would have given them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/format/record_views.h"
#include "traces/format/trace.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// Fields that a file does not contain, by name.
using UnfilledFields = std::map<std::string, UnfilledField, std::less<>>;

// Counts a field that a call or communicator does not have. `instead` describes the value that is used in its
// place.
void CountUnfilled(UnfilledFields& fields, std::string_view field, std::string_view instead, uint64_t count);

// Sorts with std::stable_sort, unless the values are sorted already, as they are in most files.
template <typename T, typename Before>
void SortOnce(std::vector<T>& values, const Before& before) {
  if (!std::is_sorted(values.begin(), values.end(), before))
    std::stable_sort(values.begin(), values.end(), before);
}

// A call as a file describes it. The section fills in call number, place in the group and number of ranks of
// `issued`.
struct ImportedCall {
  IssuedCall issued;        // duration_ns is -1 where the file has no duration
  CollectiveConfig chosen;  // the config that the library used, where the file names it
  uint32_t stream = 0;
};

// Builds one section. One importer uses the object for one file, on one thread. It also counts the fields
// that the file does not contain, so that every importer reports them alike.
class RankSection {
 public:
  // `writer` names the format. The section is marked as imported; `flags` are further TraceFlags.
  // `stated_size` is ImportOptions::group_size.
  RankSection(std::string_view writer, uint32_t flags, int32_t stated_size = 0);

  // The section, for setting its rank, world, host and other descriptions.
  TraceSection& section() { return section_; }

  // Returns the number of the communicator that the file names `key`. The first call with a key adds a
  // Communicator record with `info`, just before `now_ns`; later calls ignore both.
  uint32_t Communicator(std::string_view key, const CommunicatorInfo& info, int64_t now_ns);
  // The number of a communicator that has one; nothing for a new key.
  std::optional<uint32_t> Known(std::string_view key) const;

  // True if the user stated a size for groups whose size the file does not state.
  bool SizeIsStated() const { return stated_size_ > 0; }
  // The number of ranks of a group whose size the file does not state: what the user stated, else 1.
  int32_t UntoldSize() const { return std::max(stated_size_, 1); }
  // Counts a communicator whose size the file does not state. If the user did not state it either, the
  // section is marked with kTraceGroupsUnknown.
  void CountUntoldSize();

  // Appends the calls of one group on one communicator. Only collectives advance the communicator's call
  // number, see CollectiveCall::call_number.
  void AppendGroup(uint32_t communicator, std::span<const ImportedCall> calls);
  // States the number of the communicator's next group, for files that begin in the middle of a job.
  void NumberNext(uint32_t communicator, uint64_t number) { next_call_numbers_[communicator] = number; }
  void Append(uint32_t communicator, const ImportedCall& call) { AppendGroup(communicator, {&call, 1}); }
  void AppendStep(const StepView& step);

  uint64_t calls() const { return calls_; }
  size_t communicators() const { return infos_.size(); }

  // Counts a field that a call or communicator does not have. `instead` describes the value that is used in
  // its place.
  void Unfilled(std::string_view field, std::string_view instead, uint64_t count = 1) {
    CountUnfilled(unfilled_, field, instead, count);
  }

  // Marks the times of issue as not measured; `instead` describes how they were chosen. Call it after all
  // calls.
  void OrderOnly(const std::string& instead);

  // Returns the section, sorted by time and closed at its last call. Call this once.
  TraceSection Finish();
  // Returns all counted fields, by name.
  std::vector<UnfilledField> TakeUnfilled() const;

 private:
  // Writes the library's choice as a tuner's answer.
  void AppendDecision(uint32_t communicator, const ImportedCall& call);
  void Append(TraceRecord record);

  TraceSection section_;
  std::map<std::string, uint32_t, std::less<>> numbers_;
  std::vector<CommunicatorInfo> infos_;      // by number
  std::vector<uint64_t> next_call_numbers_;  // by number
  UnfilledFields unfilled_;
  uint64_t calls_ = 0;
  int32_t stated_size_ = 0;
};

// The trace of one section, whose records are not copied.
inline Trace TraceOfOne(TraceSection section) {
  Trace trace;
  trace.sections.push_back(std::move(section));
  return trace;
}

// The type that is used when the file does not name it: float, or uint8 where the bytes are no multiple of 4.
DataType UntoldType(uint64_t bytes);
inline constexpr char kUntoldTypeText[] = "float, or uint8 where 4 does not divide the bytes";

// An id for a communicator that the file identifies only by a name: equal on all ranks that know the name.
uint64_t IdOfName(std::string_view name);

// Nanoseconds between calls of files without times.
inline constexpr int64_t kUntimedStepNs = 1'000'000;

}  // namespace dynamiccl
