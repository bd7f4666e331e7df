// SPDX-License-Identifier: Apache-2.0
// Stamps the first call of each training step with an event in the program's stream, so the device itself
// says how long a step took. A host that runs ahead of its device issues a step's calls long before they run.
// NCCL's profiler cannot replace this: it costs more, up to NCCL 2.25 it reports no times, and from 2.31 on
// it needs every call (kernel_times.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "plugin/times/stream_events.h"
#include "plugin/times/times_report.h"

namespace dynamiccl {

// The stamps of one communicator on the leader's rank. Like IssuingState, they are used only by the
// communicator's issuing threads, one at a time. If the host is more than kMaxPending steps ahead of the
// device, stamps are lost. After an event has failed, no more stamps are made.
class StepStamps {
 public:
  // `events` must outlive this object; null: nothing is stamped.
  explicit StepStamps(const StreamEvents* events = nullptr) : events_(events) {}
  ~StepStamps();
  StepStamps(const StepStamps&) = delete;
  StepStamps& operator=(const StepStamps&) = delete;

  // Puts a stamp before a call that the program is about to issue in this stream, which must not be under
  // capture; a second one for the same call number is left out. Reports the earlier stamps that the device
  // has reached. Returns true if the call has a stamp, which a later call of this function reports.
  bool Stamp(uint64_t call_number, Collective collective, cudaStream_t stream, TimesReport& report);
  // Reports the stamps that the device has reached, as Stamp does. A step may last longer than the leader
  // waits for a stamp, so this function is also called between two steps.
  void ReportReached(TimesReport& report);
  bool has_pending() const { return !pending_.empty(); }
  // Sets the events, if none were set before. Null changes nothing.
  void UseEvents(const StreamEvents* events) {
    if (events_ == nullptr) events_ = events;
  }

 private:
  static constexpr size_t kMaxPending = 16;
  struct Pending {
    StreamEvent event = nullptr;
    uint64_t call_number = 0;
    Collective collective = Collective::kAllReduce;
  };

  // Returns an unused event; null if none can be had.
  StreamEvent UnusedEvent();

  const StreamEvents* events_;
  std::deque<Pending> pending_;  // in the order of the calls
  std::vector<StreamEvent> free_;
  StreamEvent last_reached_ = nullptr;  // the times of later events are counted from this one
  int64_t now_ns_ = 0;                  // time of last_reached_, counted from the first stamp
  bool failed_ = false;
};

}  // namespace dynamiccl
