// SPDX-License-Identifier: Apache-2.0
// Decided calls wait in a queue; reported times wait in a map. The ranks that report times are the reporters.
// The oldest call leaves the queue when every reporter has reported all its events, or a call that comes at
// least kOutOfOrder calls later. It also leaves when kPatienceNs has passed.
#include "src/decision/guard/timed_calls.h"

#include <algorithm>
#include <iterator>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// A reporter may report this many later calls before the times of a call. Kernels of a communicator run in
// their order, but several threads report their ends. If a reporter has reported a call this much later,
// missing times are lost.
constexpr uint64_t kOutOfOrder = 8;
// Nanoseconds after which missing times count as lost: a host may run ahead of its device by seconds.
constexpr int64_t kPatienceNs = 5'000'000'000;
// Nanoseconds after which missing stamps count as lost. The leader's rank reports a stamp when it issues a
// later call, which may be a step later.
constexpr int64_t kPatienceForStampsNs = 60'000'000'000;
// The most reports that are kept for calls that the leader's own rank has not added. It may not have issued
// the call yet, or its decision was lost.
constexpr size_t kMaxReports = 4096;

// Reporters are rank 0 and every Stride-th rank after it.
int Stride(int n_ranks) {
  return (n_ranks + kMaxReporters - 1) / kMaxReporters;
}

}  // namespace

int ReportersOf(int n_ranks) {
  const int stride = Stride(n_ranks);
  return (n_ranks + stride - 1) / stride;
}

int ReporterOf(int rank, int n_ranks) {
  const int stride = Stride(n_ranks);
  return rank % stride == 0 ? rank / stride : -1;
}

void TimedCalls::Add(const DecidedCall& call) {
  // If two keys of one call have the same collective, the reported times do not show to which key they
  // belong. Questions about one call follow each other directly, so only the last calls are compared.
  for (auto before = calls_.rbegin(); before != calls_.rend() && before->number == call.number; ++before) {
    if (before->key.collective != call.key.collective) continue;
    if (KeyCode(before->key) == KeyCode(call.key)) return;
    before->timed = false;
    calls_.push_back(call);
    calls_.back().timed = false;
    return;
  }
  calls_.push_back(call);
}

void TimedCalls::AddTimes(int reporter, std::span<const CallTime> times) {
  const bool counts = reporter >= 0 && reporter < reporters_;
  const auto place = static_cast<size_t>(reporter);
  for (const CallTime& time : times) {
    if (time.ns == 0) TakeStamp(time);
    if (time.ns == 0 || !counts) continue;
    newest_[place] = std::max(newest_[place], time.call_number);
    if (time.call_number < taken_) continue;
    Reports& reports = reports_[{time.call_number, time.collective}];
    reports.ns[place] = std::max(reports.ns[place], time.ns);
    ++reports.events[place];
  }
  while (reports_.size() > kMaxReports) reports_.erase(reports_.begin());
}

void TimedCalls::TakeStamp(const CallTime& stamp) {
  newest_stamp_ = std::max(newest_stamp_, stamp.call_number);
  if (stamp.call_number >= taken_) stamps_[stamp.call_number] = stamp.begun_ns;
  while (stamps_.size() > kMaxReports) stamps_.erase(stamps_.begin());
}

bool TimedCalls::HasReported(const DecidedCall& call, size_t reporter) const {
  if (newest_[reporter] >= call.number + kOutOfOrder) return true;
  const auto reports = reports_.find({call.number, call.key.collective});
  return reports != reports_.end() && reports->second.events[reporter] >= call.events;
}

// Stamps are reported in the order of calls. So a stamp is lost if a later stamp has arrived.
bool TimedCalls::Complete(const DecidedCall& call, int64_t now_ns) const {
  const bool may_wait = now_ns - call.issued_ns <= kPatienceForStampsNs && calls_.size() <= kMaxReports;
  if (call.stamped && newest_stamp_ < call.number && may_wait) return false;
  if (!call.timed || call.captured || now_ns - call.issued_ns > kPatienceNs) return true;
  for (int reporter = 0; reporter < reporters_; ++reporter) {
    if (!HasReported(call, static_cast<size_t>(reporter))) return false;
  }
  return true;
}

void TimedCalls::PutTimes(const DecidedCall& call, GuardedCall& guarded) const {
  const auto reports = reports_.find({call.number, call.key.collective});
  if (!call.timed || reports == reports_.end()) return;
  std::vector<int64_t> known;
  std::copy_if(reports->second.ns.begin(), reports->second.ns.end(), std::back_inserter(known),
               [](int64_t ns) { return ns > 0; });
  if (known.empty()) return;
  const auto [least, most] = std::minmax_element(known.begin(), known.end());
  guarded.transfer_ns = *least;
  guarded.cost_ns = static_cast<int64_t>(Median(known));
  if (known.size() == static_cast<size_t>(reporters_) && reporters_ > 1) guarded.skew_ns = *most - *least;
}

std::optional<GuardedCall> TimedCalls::Next(int64_t now_ns) {
  if (calls_.empty() || !Complete(calls_.front(), now_ns)) return std::nullopt;
  const DecidedCall call = calls_.front();
  calls_.pop_front();
  GuardedCall guarded{call.key, call.use, call.config, call.version, call.issued_ns};
  guarded.captured = call.captured;
  guarded.on_suspicion = call.on_suspicion;
  guarded.number = call.number;
  guarded.structure_changes = call.structure_changes;
  guarded.stage = call.stage;
  const auto stamp = stamps_.find(call.number);
  if (call.stamped && stamp != stamps_.end()) guarded.begun_ns = stamp->second;
  PutTimes(call, guarded);
  taken_ = calls_.empty() ? call.number : calls_.front().number;
  reports_.erase(reports_.begin(), reports_.lower_bound({taken_, Collective{}}));
  stamps_.erase(stamps_.begin(), stamps_.lower_bound(taken_));
  return guarded;
}

}  // namespace dynamiccl
