// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/store_writer.h"

#include <chrono>
#include <thread>
#include <utility>

#include "plugin/border/no_throw.h"
#include "plugin/border/signal_block.h"
#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/decision/site_store/site_store_file.h"

namespace dynamiccl {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
// Nanoseconds that a write waits for another process that holds the store.
constexpr int64_t kLockNs = 200'000'000;

int64_t SecondsSince1970() {
  return RealtimeNanoseconds() / 1'000'000'000;
}

}  // namespace

bool StoreWriter::Begin(const std::vector<std::shared_ptr<TableGuard>>& guards) {
  if (!writes()) return true;
  if (!Finish(0)) return false;
  const auto job = std::make_shared<Job>();
  job->now_s = SecondsSince1970();
  std::vector<Part> parts;
  for (const auto& guard : guards) {
    parts.push_back({guard, guard->UnsavedResults(job->now_s)});
    job->learnt.Learn(parts.back().learnt);
  }
  if (job->learnt.empty()) return true;
  const SignalBlock no_signals;  // inherited by the thread
  std::thread([job, path = path_] {
    job->status = MakeError(ErrorKind::kUnavailable, "memory is short");
    NoThrow([&] { job->status = AddToSiteStore(path, job->learnt, job->now_s, kLockNs); });
    job->done.store(true, std::memory_order_release);
  }).detach();
  job_ = job;
  parts_ = std::move(parts);
  return true;
}

bool StoreWriter::Finish(int64_t patience_ns) {
  if (!job_) return true;
  const int64_t until_ns = MonotonicNanoseconds() + patience_ns;
  while (!job_->done.load(std::memory_order_acquire)) {
    if (MonotonicNanoseconds() >= until_ns) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  const auto job = std::exchange(job_, nullptr);
  const std::vector<Part> parts = std::exchange(parts_, {});
  WarnOnce(job->status);
  for (const Part& part : parts) {
    if (job->status) part.guard->MarkSaved(part.learnt);
  }
  return true;
}

void StoreWriter::WarnOnce(const Status& status) {
  if (!status && !std::exchange(warned_, true))
    Log(LogLevel::kWarn, "what was learnt is not kept yet: {}", status.error().message);
}

}  // namespace dynamiccl
