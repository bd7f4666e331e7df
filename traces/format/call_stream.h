// SPDX-License-Identifier: Apache-2.0
// Joins the calls of one section with the tuner's answers while the records pass, with a bounded number of
// calls in memory. CallsOf (trace_calls.h) does the same for a section that is in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "traces/format/trace_calls.h"

namespace dynamiccl {

// One call with the answers to it, as records.
struct StreamedCall {
  TraceRecord record;  // of kind Collective or PointToPoint
  int64_t step = -1;   // step of the last mark before the call; -1: none
  // The last answer to the call, and the last answer that states what the policy recognised.
  std::optional<TraceRecord> decision;
  std::optional<TraceRecord> recognised;
};

// The number of calls that wait for answers to them. An answer waits for its call while twice this number of
// records pass. A tuner is asked when a group ends, so an answer lies at most one group from its call.
inline constexpr size_t kWaitingCalls = 1 << 15;

// Takes the records of one section in order and passes on its calls in order of issue. An answer that lies
// farther from its call than kWaitingCalls calls is left out. Nearer answers are joined with their calls as
// CallsOf joins them.
class CallStream {
 public:
  using Consumer = std::function<void(StreamedCall&)>;

  // `communicators` are all that the section describes (CommunicatorsOf) and must outlive this object; calls
  // on others are left out. With `decisions` false, no call waits for an answer, and answers are left out.
  CallStream(const std::map<uint32_t, CommunicatorInfo>& communicators, bool decisions, Consumer consumer)
      : communicators_(communicators), decisions_(decisions), consumer_(std::move(consumer)) {}

  void Take(const TraceRecord& record);
  // Passes on the calls that still wait.
  void Finish();

 private:
  // Communicator, call number, index in group.
  using CallKey = std::tuple<uint32_t, uint64_t, uint16_t>;
  struct KeyHash {
    size_t operator()(const CallKey& key) const {
      const auto& [communicator, number, index] = key;
      return (number * 0x9e3779b97f4a7c15ULL) ^ (uint64_t{communicator} << 17) ^ (uint64_t{index} << 40);
    }
  };
  struct Answers {
    std::optional<uint64_t> last_call;  // the newest call with this key, counted from the section's first one
    std::optional<TraceRecord> decision, recognised;
  };
  struct Orphan {
    CallKey key;
    uint64_t records = 0;
  };

  static CallKey KeyOf(const TraceRecord& record) {
    return {record.communicator, record.call_number, record.index_in_group};
  }
  void TakeCall(const TraceRecord& record);
  void TakeDecision(const TraceRecord& record);
  void DropOldOrphans();
  void PassOn();

  const std::map<uint32_t, CommunicatorInfo>& communicators_;
  bool decisions_;
  Consumer consumer_;
  int64_t step_ = -1;
  uint64_t records_ = 0;  // number of records taken so far
  uint64_t passed_ = 0;   // number of calls passed on
  std::deque<StreamedCall> waiting_;
  std::unordered_map<CallKey, Answers, KeyHash> answers_;
  std::deque<Orphan> orphans_;  // answers without a call, oldest first
};

// Decodes a call. `communicator` is the communicator of its record.
TraceCall DecodedCall(const StreamedCall& call, const CommunicatorInfo& communicator);

}  // namespace dynamiccl
