// SPDX-License-Identifier: Apache-2.0
// The section of one rank, built from an importer's calls in order of issue: communicators and calls get the
// numbers that a recorder would have given them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "traces/format/record_views.h"
#include "traces/format/trace.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// What a file tells of one call. Of `issued`, call number, place in the group and ranks are filled in later.
struct ImportedCall {
  IssuedCall issued;        // duration_ns -1: not told
  CollectiveConfig chosen;  // what the library ran, where the file tells it
  uint32_t stream = 0;
};

class RankSection {
 public:
  // `writer` names the format. The section is marked as imported; `flags` are TraceFlags besides.
  RankSection(std::string_view writer, uint32_t flags);

  TraceSection& section() { return section_; }

  // The number of the communicator that the file names by `key`. The first call announces it as `info`, just
  // before `now_ns`; later ones ignore both.
  uint32_t Communicator(const std::string& key, const CommunicatorInfo& info, int64_t now_ns);

  // Calls of one group on one communicator. Only collectives advance the communicator's call number, see
  // CollectiveCall::call_number.
  void AppendGroup(uint32_t communicator, std::span<const ImportedCall> calls);
  void Append(uint32_t communicator, const ImportedCall& call) { AppendGroup(communicator, {&call, 1}); }
  void AppendStep(const StepView& step);

  uint64_t calls() const { return calls_; }
  size_t communicators() const { return infos_.size(); }

  // Counts a field that a call or communicator does not tell.
  void Unfilled(const std::string& field, const std::string& instead, uint64_t count = 1);

  // The section closed at its last call. Call once.
  TraceSection Finish();
  std::vector<UnfilledField> TakeUnfilled() const;

 private:
  void AppendDecision(uint32_t communicator, const ImportedCall& call);
  void Append(TraceRecord record);

  TraceSection section_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<CommunicatorInfo> infos_;      // by number
  std::vector<uint64_t> next_call_numbers_;  // by number
  std::map<std::string, UnfilledField> unfilled_;
  uint64_t calls_ = 0;
};

// What stands for a type that the file does not tell: float, or uint8 where the bytes are no multiple of 4.
DataType UntoldType(uint64_t bytes);
inline constexpr char kUntoldTypeText[] = "float, or uint8 where 4 does not divide the bytes";

// An id for a communicator of which the file tells only a name: equal on all ranks that know the name.
uint64_t IdOfName(std::string_view name);

// Calls of files without times stand this far apart.
inline constexpr int64_t kUntimedStepNs = 1'000'000;

}  // namespace dynamiccl
