// SPDX-License-Identifier: Apache-2.0
// A sequence lock (seqlock) over plain words: an odd version means that a writer is at work. The words are
// atomic, where a usual seqlock has a fence, because ThreadSanitizer does not understand fences.
#include "src/transport/link_state.h"

#include <bit>

namespace dynamiccl {

// A reader that sees any word of a newer order also sees the odd version that was stored before that word,
// and then returns nothing.
void OrderedChange::Write(const Order& order) {
  const uint64_t version = version_.load(std::memory_order_relaxed) & ~uint64_t{1};
  version_.store(version + 1, std::memory_order_relaxed);
  words_[0].store(order.change.fields, std::memory_order_release);
  words_[1].store(std::bit_cast<uint64_t>(order.until_ns), std::memory_order_release);
  for (size_t i = 0; i < kLinkFields; ++i) {
    const double value = order.change.values.*LinkFieldTable()[i].value;
    words_[2 + i].store(std::bit_cast<uint64_t>(value), std::memory_order_release);
  }
  version_.store(version + 2, std::memory_order_release);
}

std::optional<OrderedChange::Order> OrderedChange::Read() const {
  const uint64_t before = version();
  Order order;
  order.change.fields = static_cast<uint32_t>(words_[0].load(std::memory_order_acquire));
  order.until_ns = std::bit_cast<int64_t>(words_[1].load(std::memory_order_acquire));
  for (size_t i = 0; i < kLinkFields; ++i) {
    order.change.values.*LinkFieldTable()[i].value =
        std::bit_cast<double>(words_[2 + i].load(std::memory_order_acquire));
  }
  if (before % 2 != 0 || version_.load(std::memory_order_relaxed) != before) return {};
  return order;
}

}  // namespace dynamiccl
