// SPDX-License-Identifier: Apache-2.0
// What a first pass over a trace's records finds, before their calls are counted. None of it grows with the
// number of calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "tools/report/coverage_ledger.h"
#include "traces/format/call_stream.h"
#include "traces/format/record_source.h"

namespace dynamiccl {

// The numbers of steps, each once, in increasing order, with the time of the first mark of each.
class StepMarks {
 public:
  void Take(uint64_t step, int64_t marked_ns);
  // Steps and the times of their first marks on the section's clock.
  const std::vector<std::pair<uint64_t, int64_t>>& firsts() const { return firsts_; }

 private:
  std::vector<std::pair<uint64_t, int64_t>> firsts_;
};

// The memory of the device as the program reported it.
struct SeenMemory {
  uint64_t least_free_bytes = 0;
  uint64_t total_bytes = 0;  // 0: the program reported nothing
  void Take(const MemoryView& memory);
};

// What the first pass finds in one section.
struct SectionScan {
  TraceSection description;  // without records
  std::map<uint32_t, CommunicatorInfo> communicators;
  bool decisions = false;   // the tuner was asked about some call
  bool recognised = false;  // some answer says what the policy recognised
  bool labelled = false;    // the program labelled some call
  // Number of calls on communicators that the section describes, and when the first and the last were issued.
  uint64_t calls = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  StepMarks steps;
  std::set<ZeroStage> marked_stages;
  std::vector<SamplesView> samples;
  std::vector<WaitedShareView> waited_shares;
  SeenMemory memory;
  KindTimes kinds;
};

// Scans all sections of a trace. In the first section, which a report counts, all facts are filled in. In the
// others among the first `described` sections, `communicators` and `decisions` are filled in too. Further
// sections have only their description. With `described` 0 every section has only its description.
Result<std::vector<SectionScan>> ScanSections(const RecordSource& source, size_t described);

// Says if a pass joins calls with the tuner's answers, which takes half of the pass's time.
enum class Answers { kJoined, kLeftOut };

// Passes the calls of the first `count` sections to `consumer`, with the section's index.
Status PassCalls(const RecordSource& source, const std::vector<SectionScan>& sections, size_t count,
                 const std::function<void(size_t section, StreamedCall& call)>& consumer,
                 Answers answers = Answers::kJoined);

}  // namespace dynamiccl
