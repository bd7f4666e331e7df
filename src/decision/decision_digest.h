// SPDX-License-Identifier: Apache-2.0
// A digest of all decisions that a rank has made on a communicator so far. It is equal on all ranks as long
// as the ranks decide alike. Once the ranks differ, their digests stay different (except with a probability
// of about 2^-64). The ranks report it at multiples of kCheckpointCalls, and digest_comparison.h compares the
// reports.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/decision/decision_engine.h"

namespace dynamiccl {

// The digest when call `call` begins: it covers the decisions of all lower call numbers.
struct DigestCheckpoint {
  uint64_t call = 0;
  uint64_t digest = 0;

  friend bool operator==(const DigestCheckpoint&, const DigestCheckpoint&) = default;
};

// Checkpoints are kept at multiples of this many calls: every few milliseconds in a busy job, every few
// seconds in a quiet one.
inline constexpr uint64_t kCheckpointCalls = 256;
// Number of kept checkpoints. For each power of two, the digest keeps the last checkpoint whose index is a
// multiple of it. So ranks that report at different times have checkpoints in common. A job issues fewer than
// 2^15 x 256 calls between two reports.
inline constexpr int kKeptCheckpoints = 16;

// The digest of one communicator on one rank. Its SwitchableTables (plugin/runtime) owns it. The issuing
// thread writes it while NCCL decides a call, and any thread may read the checkpoints. It uses no lock or
// system call, and only CheckpointsAfter allocates.
class DecisionDigest {
 public:
  // Issuing thread: call `number` begins. If NCCL refused a call, the call begins again with the same number,
  // and the decisions of the first attempt are removed from the digest.
  void Begin(uint64_t number) {
    last_ = kNothing;
    if (number == call_) {
      rolling_ = before_call_;
      return;
    }
    call_ = number;
    before_call_ = rolling_;
    if (number % kCheckpointCalls == 0 && number != 0) Keep();
  }

  // Issuing thread: adds the decision of a table with that version about one question of the call. NCCL
  // sometimes asks the same question twice in a row; the second one is not counted.
  void Add(const DecisionKey& key, const CollectiveConfig& config, uint32_t table_version) {
    const uint64_t decided =
        uint64_t{table_version} << 32 | uint64_t{static_cast<uint8_t>(config.algorithm) & 15u} << 28 |
        uint64_t{static_cast<uint8_t>(config.protocol) & 15u} << 24 | uint64_t{config.channels} << 16 |
        uint64_t{static_cast<uint8_t>(key.collective) & 15u} << 12 |
        uint64_t{static_cast<uint8_t>(key.role) & 15u} << 8 | uint64_t{SizeClassOf(key.bytes).index};
    if (decided == last_) return;
    last_ = decided;
    rolling_ = Mix(Mix(rolling_ ^ call_) ^ decided);
  }

  // Any thread: returns the kept checkpoints after call `after`, in no particular order.
  std::vector<DigestCheckpoint> CheckpointsAfter(uint64_t after) const {
    std::vector<DigestCheckpoint> found;
    for (const Slot& slot : kept_) {
      const uint64_t call = slot.call.load(std::memory_order_acquire);
      const uint64_t digest = slot.digest.load(std::memory_order_acquire);
      // Skips a checkpoint that the issuing thread is writing; the next call of CheckpointsAfter returns it.
      if (call == kBeingWritten || slot.call.load(std::memory_order_relaxed) != call) continue;
      if (call > after) found.push_back({call, digest});
    }
    return found;
  }

 private:
  // A checkpoint; `call` guards `digest` as in a sequence lock.
  struct Slot {
    std::atomic<uint64_t> call{0};
    std::atomic<uint64_t> digest{0};
  };

  // A bijection, so numbers that differ stay different. The constant is the first one of SplitMix64's
  // finaliser.
  static constexpr uint64_t Mix(uint64_t word) {
    word *= 0xbf58476d1ce4e5b9;
    return word ^ word >> 32;
  }

  // Writes the checkpoint before the decisions of call_. A reader that sees the new digest also sees
  // kBeingWritten or the new call number, so the reader notices the change.
  void Keep() {
    const int power = std::countr_zero(call_ / kCheckpointCalls);
    Slot& slot = kept_[static_cast<size_t>(power < kKeptCheckpoints ? power : kKeptCheckpoints - 1)];
    slot.call.store(kBeingWritten, std::memory_order_relaxed);
    slot.digest.store(rolling_, std::memory_order_release);
    slot.call.store(call_, std::memory_order_release);
  }

  static constexpr uint64_t kBeingWritten = ~uint64_t{0};
  static constexpr uint64_t kNothing = ~uint64_t{0};

  // The number of the call under way; the digest with the call's decisions (rolling_) and without them; and
  // the last decision.
  uint64_t call_ = ~uint64_t{0};
  uint64_t rolling_ = 0;
  uint64_t before_call_ = 0;
  uint64_t last_ = kNothing;
  std::array<Slot, kKeptCheckpoints> kept_;
};

}  // namespace dynamiccl
