// SPDX-License-Identifier: Apache-2.0
#include "plugin/times/step_stamps.h"

#include <utility>

namespace dynamiccl {

StepStamps::~StepStamps() {
  for (const Pending& pending : pending_) events_->Free(pending.event);
  for (StreamEvent event : free_) events_->Free(event);
  if (last_reached_ != nullptr) events_->Free(last_reached_);
}

bool StepStamps::Stamp(uint64_t call_number, Collective collective, cudaStream_t stream,
                       TimesReport& report) {
  if (events_ == nullptr || failed_) return false;
  if (!pending_.empty() && pending_.back().call_number == call_number) return true;
  ReportReached(report);
  if (failed_ || pending_.size() == kMaxPending) return false;
  StreamEvent event = UnusedEvent();
  if (event == nullptr) return false;
  failed_ = !events_->Record(event, stream);
  if (failed_) {
    free_.push_back(event);
    return false;
  }
  pending_.push_back({event, call_number, collective});
  return true;
}

StreamEvent StepStamps::UnusedEvent() {
  if (free_.empty()) {
    StreamEvent made = events_->Make();
    failed_ = made == nullptr;
    return made;
  }
  StreamEvent event = free_.back();
  free_.pop_back();
  return event;
}

// The time of each stamp is computed from the stamp before it. CUDA returns the time between two events as a
// float of milliseconds, which is exact to microseconds only for short times.
void StepStamps::ReportReached(TimesReport& report) {
  while (!pending_.empty() && !failed_) {
    const Pending& oldest = pending_.front();
    const std::optional<bool> reached = events_->Reached(oldest.event);
    failed_ = !reached;
    if (!reached.value_or(false)) return;
    if (last_reached_ != nullptr) {
      const std::optional<int64_t> since_ns = events_->Between(last_reached_, oldest.event);
      failed_ = !since_ns;
      if (failed_) return;
      now_ns_ += *since_ns;
      free_.push_back(last_reached_);
    }
    last_reached_ = oldest.event;
    report.Add({oldest.call_number, oldest.collective, 0, now_ns_});
    pending_.pop_front();
  }
}

}  // namespace dynamiccl
