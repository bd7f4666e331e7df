// SPDX-License-Identifier: Apache-2.0
// Transfer times with load and bursts, jitter, and the booking of a link. All randomness is a hash of (seed,
// number), so every rank and every repetition gets the same delays.
#include "src/transport/shaped_link.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// The longest jitter as a multiple of the mean. Without this limit a share of e^-10 of the messages would
// have more jitter, and such a message could look like a hang.
constexpr double kJitterLimit = 10;

// Returns a number in [0, 1) that looks random but depends only on the two arguments: splitmix64 (Steele, Lea
// and Flood, 2014) of a mix of both.
double Random(uint64_t seed, uint64_t number) {
  uint64_t x = seed + (number + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

bool Bursts(const LinkShape& shape) {
  return shape.load > 0 && shape.burst_on_ms > 0 && shape.burst_off_ms > 0;
}

// Returns the nanoseconds that one byte takes when no other job's traffic is on the link.
double NsPerByte(const LinkShape& shape) {
  return shape.bandwidth_gbps > 0 ? 1 / (shape.bandwidth_gbps * shape.degrade) : 0;
}

// Traffic of other jobs that comes in bursts. Time is cut into cycles; each has the length of one burst plus
// the mean pause. The burst's place in its cycle is random, so pauses last between 0 and twice their mean.
// All times are nanoseconds since the links were made.
class Strangers {
 public:
  Strangers(const LinkShape& shape, uint64_t seed)
      : seed_(seed),
        on_ns_(std::max<int64_t>(1, std::llround(shape.burst_on_ms * 1e6))),
        off_ns_(std::max<int64_t>(1, std::llround(shape.burst_off_ms * 1e6))),
        cycle_ns_(on_ns_ + off_ns_),
        burst_rate_(1 - shape.load) {}

  // Returns the time at which a transfer ends that starts at `start_ns` and would take `work_ns` on a link
  // without other traffic. Whole cycles are skipped in one step.
  int64_t EndOf(int64_t start_ns, double work_ns) const {
    const double work_a_cycle = static_cast<double>(on_ns_) * burst_rate_ + static_cast<double>(off_ns_);
    int64_t now = start_ns;
    for (;;) {
      if (now % cycle_ns_ == 0 && work_ns >= work_a_cycle) {
        const double cycles = std::floor(work_ns / work_a_cycle);
        now += static_cast<int64_t>(cycles) * cycle_ns_;
        work_ns -= cycles * work_a_cycle;
      }
      const Span span = SpanAt(now);
      const double can = static_cast<double>(span.end_ns - now) * span.rate;
      if (can >= work_ns) return now + std::llround(work_ns / span.rate);
      work_ns -= can;
      now = span.end_ns;
    }
  }

 private:
  // A stretch of time in which the link has one rate: its end, and the rate as a share of the bandwidth.
  struct Span {
    int64_t end_ns;
    double rate;
  };

  Span SpanAt(int64_t now_ns) const {
    const int64_t cycle = now_ns / cycle_ns_;
    const double place = Random(seed_, static_cast<uint64_t>(cycle));
    const int64_t burst_ns = cycle * cycle_ns_ + static_cast<int64_t>(place * static_cast<double>(off_ns_));
    if (now_ns < burst_ns) return {burst_ns, 1};
    if (now_ns < burst_ns + on_ns_) return {burst_ns + on_ns_, burst_rate_};
    return {(cycle + 1) * cycle_ns_, 1};
  }

  uint64_t seed_;
  int64_t on_ns_;
  int64_t off_ns_;
  int64_t cycle_ns_;
  double burst_rate_;
};

}  // namespace

int64_t TransferNs(const LinkShape& shape, uint64_t seed, int64_t start_ns, size_t bytes) {
  const double work_ns = static_cast<double>(bytes) * NsPerByte(shape);
  if (Bursts(shape)) return Strangers(shape, seed).EndOf(start_ns, work_ns) - start_ns;
  return std::llround(work_ns / (1 - shape.load));
}

int64_t JitterNs(const LinkShape& shape, uint64_t seed, uint64_t message) {
  if (shape.jitter_us <= 0) return 0;
  // Jitter uses the seed ~seed, so that its random numbers are independent of those of the bursts.
  const double means = std::min(kJitterLimit, -std::log1p(-Random(~seed, message)));
  return std::llround(means * shape.jitter_us * 1e3);
}

ShapedLink::ShapedLink(LinkTimeline timeline, uint64_t seed, LinkState* state, const JobClock* clock)
    : timeline_(std::move(timeline)),
      seed_(seed),
      state_(state),
      clock_(clock),
      by_calls_(timeline_.depends_on_calls()) {}

void ShapedLink::Rebuild(int64_t now_ns) {
  seen_calls_ = clock_->calls.load(std::memory_order_relaxed);
  epoch_ns_ = clock_->epoch_ns.load(std::memory_order_relaxed);
  const uint64_t version = state_->ordered.version();
  if (const auto order = state_->ordered.Read(); order && version == state_->ordered.version()) {
    seen_version_ = version;
    order_ = *order;
  }
  const int64_t elapsed_ns = now_ns - epoch_ns_;
  const int64_t next_ns = timeline_.NextChange(elapsed_ns);
  shape_ = timeline_.At({elapsed_ns, seen_calls_});
  valid_until_ns_ = next_ns == kNeverNs ? kNeverNs : epoch_ns_ + next_ns;
  if (order_.change.fields != 0 && now_ns < order_.until_ns) {
    order_.change.ApplyTo(shape_);
    valid_until_ns_ = std::min(valid_until_ns_, order_.until_ns);
  }
  latency_ns_ = std::llround(shape_.latency_us * 1e3 / shape_.degrade);
  ns_per_byte_ = NsPerByte(shape_) / (1 - shape_.load);
  bursts_ = Bursts(shape_);
}

int64_t ShapedLink::Schedule(int64_t now_ns, size_t bytes) {
  Refresh(now_ns);
  const uint64_t message = state_->messages.fetch_add(1, std::memory_order_relaxed);
  state_->bytes.fetch_add(bytes, std::memory_order_relaxed);
  // Several senders may book the link at the same time. A sender that loses the compare-and-exchange starts
  // after the winner.
  int64_t busy = state_->busy_until_ns.load(std::memory_order_relaxed);
  int64_t sent = 0;
  do {
    const int64_t start = std::max(busy, now_ns);
    sent = start + (bursts_ ? TransferNs(shape_, seed_, std::max<int64_t>(0, start - epoch_ns_), bytes)
                            : std::llround(static_cast<double>(bytes) * ns_per_byte_));
  } while (!state_->busy_until_ns.compare_exchange_weak(busy, sent, std::memory_order_relaxed));
  return sent + latency_ns_ + JitterNs(shape_, seed_, message);
}

}  // namespace dynamiccl
