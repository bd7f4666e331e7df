// SPDX-License-Identifier: Apache-2.0
// PAT ReduceScatter: partial sums go up the trees of PAT AllGather (pat_tree.h), the nearest step first. A
// rank sends n/2 partial sums to its neighbour, and at last one over a distance of n/2 ranks
// (docs/algorithms.md). A rank adds the sums that arrive from distance 1, then 2, then 4, ... to its own
// element or to the sum that it holds. The memory for these sums is bounded, so with more ranks chunks get
// smaller.
#include <cstring>

#include "src/hostccl/algorithms/algorithms.h"
#include "src/hostccl/algorithms/pat_tree.h"

namespace dynamiccl::hostccl {
namespace {

// In bytes, the most memory for the partial sums that a rank holds (n/2 chunks). Together with the slots of
// the FIFOs they should fit in the second-level cache.
constexpr size_t kHeldBytes = 1 << 20;

// Returns the largest chunk, in elements, whose partial sums fit in kHeldBytes.
size_t ChunkThatFits(const ChannelWork& work, size_t max_chunk) {
  const size_t granule = std::max<size_t>(1, kChunkGranuleBytes / work.element_bytes);
  const auto held = static_cast<size_t>((work.n_ranks + 1) / 2);
  const size_t fits = kHeldBytes / held / work.element_bytes / granule * granule;
  return std::max(granule, std::min(max_chunk, fits));
}

// This rank's part of all trees, for one chunk at a time. `v` is the rank's distance behind the root of a
// tree, so each value of `v` stands for one tree.
class PartialSums {
 public:
  PartialSums(const ChannelWork& work, const Reduction& reduction, size_t max_chunk)
      : work_(work),
        reduction_(reduction),
        stride_(max_chunk * work.element_bytes),
        held_(stride_ * static_cast<size_t>((work.n_ranks + 1) / 2)) {}

  void Start(Chunk chunk) { chunk_ = chunk; }
  // Returns this rank's own input for the tree in which the rank is at distance v.
  const std::byte* Own(int v) const {
    return work_.Input(static_cast<size_t>(work_.Neighbour(-v)) * work_.count + chunk_.offset);
  }
  // Returns the partial sum that this rank holds at distance v, which must be even.
  std::byte* Held(int v) { return held_.data() + static_cast<size_t>(v / 2) * stride_; }
  // Return where a phase reads the rank's own part and where it stores the sum. In the first phase (span 1) a
  // rank has only its own input.
  const std::byte* Source(int v, int span) { return span == 1 ? Own(v) : Held(v); }
  std::byte* Destination(int v, int span) { return IsFinal(span) ? work_.Output(chunk_.offset) : Held(v); }
  bool IsFinal(int span) const { return 2 * span >= work_.n_ranks; }

  // Copies the sums that a phase sends into a message. The first phase also applies the operator's factor.
  void PutTogether(Aggregation& message, int span, int first, int n) {
    for (int i = 0; i < n; ++i) {
      const std::byte* const source = Source(2 * span * (first + i) + span, span);
      std::byte* const part = message.Part(i, chunk_.count);
      if (span == 1) {
        reduction_.ScaleOwn(part, source, chunk_.count);
      } else {
        std::memcpy(part, source, chunk_.count * work_.element_bytes);
      }
    }
  }
  // Adds the blocks of a received message to this rank's sums.
  void AddApart(Aggregation& message, int span, int first, int n) {
    const ElementValue* const own = span == 1 && reduction_.multiplier ? &*reduction_.multiplier : nullptr;
    const ElementValue* const multipliers[] = {own, nullptr};
    for (int i = 0; i < n; ++i) {
      const int v = 2 * span * (first + i);
      const std::byte* const inputs[] = {Source(v, span), message.Part(i, chunk_.count)};
      std::byte* const output = Destination(v, span);
      reduction_.CombineN({.inputs = inputs,
                           .n_inputs = 2,
                           .outputs = &output,
                           .n_outputs = 1,
                           .count = chunk_.count,
                           .multipliers = own != nullptr ? multipliers : nullptr},
                          IsFinal(span));
    }
  }
  // Stores the sum for the largest distance if that is even. No rank is farther from the root, so the sum is
  // only this rank's own input.
  void HoldUnpaired() {
    const int last = work_.n_ranks - 1;
    if (last % 2 == 0) reduction_.ScaleOwn(Held(last), Own(last), chunk_.count);
  }

 private:
  const ChannelWork& work_;
  const Reduction& reduction_;
  const size_t stride_;
  std::vector<std::byte> held_;
  Chunk chunk_;
};

}  // namespace

Lane PatReduceScatter(Primitives& peers, const ChannelWork& work) {
  const size_t max_chunk = ChunkThatFits(work, peers.MaxChunk());
  ChunkRounds rounds(work, 1, max_chunk);
  Aggregation message(work, max_chunk);
  PartialSums sums(work, peers.reduction(), max_chunk);
  while (rounds.Next()) {
    const size_t count = rounds.At(0).count;
    sums.Start(rounds.At(0));
    const int per_message = message.PerMessage(count);
    for (int span = 1; span < work.n_ranks; span *= 2) {
      peers.Connect({{work.Neighbour(span), -1, -1}}, {{work.Neighbour(-span), -1, -1}});
      const int pairs = PairsOfSpan(work.n_ranks, span);
      for (int first = 0; first < pairs; first += per_message) {
        const int n = std::min(per_message, pairs - first);
        const int v = 2 * span * first;
        if (n == 1) {
          const std::byte* const mine = sums.Source(v + span, span);
          // These are two statements because GCC 12 has a bug: co_await on a conditional expression would
          // start both primitives.
          if (span == 1) {
            co_await peers.Send(mine, count);
          } else {
            co_await peers.SendResult(mine, count);
          }
          co_await peers.RecvReducePartial({.src = sums.Source(v, span),
                                            .dst = sums.Destination(v, span),
                                            .count = count,
                                            .is_final = sums.IsFinal(span),
                                            .is_result = span != 1});
          continue;
        }
        sums.PutTogether(message, span, first, n);
        co_await peers.SendResult(message.Part(0, 0), count * static_cast<size_t>(n));
        co_await peers.Recv(message.Part(0, 0), count * static_cast<size_t>(n));
        sums.AddApart(message, span, first, n);
      }
      if (span == 1) sums.HoldUnpaired();
    }
  }
}

}  // namespace dynamiccl::hostccl
