// SPDX-License-Identifier: Apache-2.0
// The gap from a call to the next one is a sample of a TimingDetector, in the stream of the earlier call.
// Each new suspicion and each verified change asks for kAsked timed calls. Suspicions and changes have
// separate allowances.
#include "src/decision/guard/pace_watch.h"

#include <cmath>
#include <utility>

namespace dynamiccl {

void PaceWatch::Take(uint64_t stream, int64_t issued_ns) {
  ++calls_;
  // The gap that ends now belongs to the stream of the previous call.
  const uint64_t of = std::exchange(last_stream_, stream);
  const int64_t since_ns = std::exchange(last_issued_ns_, issued_ns);
  if (since_ns == 0 || issued_ns <= since_ns || of == 0) return;
  const bool changed =
      detector_.Take({of, since_ns, std::log(static_cast<double>(issued_ns - since_ns))}).has_value();
  const bool suspected_before = std::exchange(suspected_, detector_.verifying());
  if (changed) {
    Ask(asked_on_change_);
  } else if (suspected_ && !suspected_before) {
    Ask(asked_on_suspicion_);
  }
}

void PaceWatch::Ask(uint64_t& asked) {
  const auto most = kFirstAsked + static_cast<uint64_t>(kMaxShare * static_cast<double>(calls_));
  if (wants_times() || asked + kAsked > most) return;
  asked += kAsked;
  until_ = calls_ + kAsked;
}

}  // namespace dynamiccl
