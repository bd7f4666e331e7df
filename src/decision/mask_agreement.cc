// SPDX-License-Identifier: Apache-2.0
// Settled situations are in a hash table with open addressing. Readers use it without a lock, because each
// word is written only once. Situations that are not settled are few; a map under the lock holds them.
#include "src/decision/mask_agreement.h"

namespace dynamiccl {
namespace {

constexpr int kMaskBits = kAlgorithms * kProtocols;
// A key has 3 bits for the collective, 8 for the size class and 31 for the operands. A word holds, from the
// top: the key, the mask, and a bit that is always set.
constexpr int kKeyShift = kMaskBits + 1;
static_assert(kKeyShift + 3 + 8 + 31 <= 64);
// The ranks exchange their masks of one situation at most this many times, the last time at the situation's
// 16,384th call. After that, NCCL chooses for the situation.
constexpr int kMaxAttempts = 8;

uint64_t KeyOf(const CallSituation& situation) {
  return static_cast<uint64_t>(situation.collective) << 39 | uint64_t{situation.size_class.index} << 31 |
         (situation.operands & 0x7fffffff);
}

std::optional<ConfigMask> MaskOf(uint64_t word) {
  const ConfigMask mask(word >> 1 & ((uint64_t{1} << kMaskBits) - 1));
  return mask.any() ? std::optional(mask) : std::nullopt;
}

// Fibonacci hashing: returns the top 10 bits of the product, because kSlots is 2^10.
size_t SlotOf(uint64_t key) {
  return static_cast<size_t>((key * 0x9e3779b97f4a7c15) >> 54);  // 10 bits: kSlots
}

bool IsPowerOfFour(uint64_t n) {
  return (n & (n - 1)) == 0 && (n & 0x5555555555555555) != 0;
}

}  // namespace

uint64_t MaskAgreement::Find(uint64_t key) const {
  for (size_t i = SlotOf(key);; i = (i + 1) % kSlots) {
    const uint64_t word = slots_[i].load(std::memory_order_relaxed);
    if (word == 0 || word >> kKeyShift == key) return word;
  }
}

void MaskAgreement::Settle(uint64_t key, const ConfigMask& mask) {
  size_t i = SlotOf(key);
  while (slots_[i].load(std::memory_order_relaxed) != 0) i = (i + 1) % kSlots;
  slots_[i].store(key << kKeyShift | mask.to_ullong() << 1 | 1, std::memory_order_relaxed);
  ++n_settled_;
}

std::optional<ConfigMask> MaskAgreement::Settled(const CallSituation& situation) const {
  return MaskOf(Find(KeyOf(situation)));
}

[[gnu::hot]] std::optional<ConfigMask> MaskAgreement::AgreedMask(const CallSituation& situation,
                                                                 uint64_t call_number,
                                                                 const ConfigMask& seen) {
  const uint64_t word = Find(KeyOf(situation));
  if (word != 0) return MaskOf(word);
  // Waits without the lock, because another thread may ask about another situation meanwhile.
  if (const auto awaited = AwaitedVerdict(situation, call_number)) awaited->Wait();
  return NegotiateMask(situation, call_number, seen);
}

std::shared_ptr<PendingVerdict> MaskAgreement::AwaitedVerdict(const CallSituation& situation,
                                                              uint64_t call_number) {
  const std::lock_guard lock(mutex_);
  const auto open = open_.find(KeyOf(situation));
  const bool waits = open != open_.end() && open->second.last_call != call_number &&
                     open->second.verdict != nullptr && !open->second.verdict->ready();
  return waits ? open->second.verdict : nullptr;
}

std::optional<ConfigMask> MaskAgreement::NegotiateMask(const CallSituation& situation, uint64_t call_number,
                                                       const ConfigMask& seen) {
  const std::lock_guard lock(mutex_);
  const uint64_t key = KeyOf(situation);
  const bool known = open_.contains(key);
  if (!known && n_settled_ + open_.size() >= kMaxSettled) return std::nullopt;
  Open& open = open_[key];
  // A group may ask about a situation more than once, but a group counts as one call.
  if (known && call_number == open.last_call) return std::nullopt;
  open.last_call = call_number;
  ++open.calls;
  if (open.verdict != nullptr && ApplyVerdict(key, open)) return Settled(situation);
  open.due = open.due || IsPowerOfFour(open.calls);
  if (open.due && !SkipsVotes()) {
    open.due = false;
    open.pledged = {situation, open.attempts++, call_number, seen};
    open.verdict = exchange_->Pledge(open.pledged);
    ++pledges_;
  }
  return std::nullopt;
}

bool MaskAgreement::ApplyVerdict(uint64_t key, Open& open) {
  const Verdict& verdict = open.verdict->Wait();
  all_came_ = all_came_ || !verdict.timed_out;
  if (!verdict.agreed) refused_(open.pledged.situation, verdict);
  if (verdict.timed_out && open.attempts < kMaxAttempts) {
    open.verdict.reset();
    return false;
  }
  Settle(key, verdict.agreed ? open.pledged.mask : ConfigMask());
  open_.erase(key);
  return true;
}

}  // namespace dynamiccl
