// SPDX-License-Identifier: Apache-2.0
// An emulated link: when a message that is posted now has arrived at the other end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

// Lives in shared memory, zero-initialised: all senders over one direction of a link queue behind each other.
struct alignas(64) LinkState {
  std::atomic<int64_t> busy_until_ns;
};

class ShapedLink {
 public:
  // `bandwidth_gbps` is 1e9 bytes a second; 0 means that only latency is emulated.
  ShapedLink(double latency_us, double bandwidth_gbps, LinkState* state)
      : latency_ns_(static_cast<int64_t>(latency_us * 1e3)),
        ns_per_byte_(bandwidth_gbps > 0 ? 1.0 / bandwidth_gbps : 0),
        state_(state) {}

  // Books the link for the message and returns its arrival: max(now, link free) + bytes / bandwidth +
  // latency.
  int64_t Schedule(int64_t now_ns, size_t bytes) const {
    const auto transfer = static_cast<int64_t>(static_cast<double>(bytes) * ns_per_byte_);
    int64_t busy = state_->busy_until_ns.load(std::memory_order_relaxed);
    int64_t sent = 0;
    do {
      sent = (busy > now_ns ? busy : now_ns) + transfer;
    } while (!state_->busy_until_ns.compare_exchange_weak(busy, sent, std::memory_order_relaxed));
    return sent + latency_ns_;
  }

 private:
  int64_t latency_ns_;
  double ns_per_byte_;
  LinkState* state_;
};

}  // namespace dynamiccl
