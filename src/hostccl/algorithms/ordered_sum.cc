// SPDX-License-Identifier: Apache-2.0
// The algorithms for HOSTCCL_SUM=rank_order. Every rank sends each element to the element's owner. The owner
// combines them in the order of ranks 0, 1, ..., n-1 in the compute type and rounds once. So the result
// depends on the data alone, not on algorithm, protocol or channels.
#include <vector>

#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {
namespace {

// The owner's sum for one chunk. The object is a local variable of a lane.
class OrderedAccumulator {
 public:
  OrderedAccumulator(const ChannelWork& work, size_t max_chunk)
      : kernels_(FindWideAccumulation(work.data_type, work.op, work.n_ranks)),
        sum_(max_chunk * kernels_.reduction.element_bytes),
        term_(sum_.size()),
        received_(max_chunk * work.element_bytes) {}

  // Returns the buffer for one rank's chunk when it arrives.
  std::byte* received() { return received_.data(); }
  // Adds one rank's chunk to the sum. The first chunk replaces the old sum.
  void Add(const std::byte* data, size_t count, bool is_first) {
    kernels_.widen(is_first ? sum_.data() : term_.data(), data, count);
    if (!is_first) kernels_.reduction.Combine(sum_.data(), sum_.data(), term_.data(), count);
  }
  // Adds this rank's own input, scaled in the same way as the inputs that other ranks send.
  void AddOwn(const Reduction& reduction, const std::byte* data, size_t count, bool is_first) {
    reduction.ScaleOwn(received_.data(), data, count);
    Add(received_.data(), count, is_first);
  }
  // Applies the operator's division, if it has one, rounds, and stores the result.
  void Finish(std::byte* out, size_t count) {
    const std::byte* const sum = sum_.data();
    std::byte* const divided = sum_.data();
    kernels_.reduction.CombineN(
        {.inputs = &sum, .n_inputs = 1, .outputs = &divided, .n_outputs = 1, .count = count}, true);
    kernels_.narrow(out, sum_.data(), count);
  }

 private:
  WideAccumulation kernels_;
  std::vector<std::byte> sum_;
  std::vector<std::byte> term_;
  std::vector<std::byte> received_;
};

// Returns a list of peers with this rank alone.
Peers Only(int rank) {
  return Peers{{rank, -1, -1}};
}

}  // namespace

// Each rank owns one chunk of every round: it collects the other ranks' inputs, sums, and sends the result to
// all.
Lane OrderedAllReduce(Primitives& peers, const ChannelWork& work) {
  ChunkRounds rounds(work, work.n_ranks, peers.MaxChunk());
  OrderedAccumulator sum(work, peers.MaxChunk());
  while (rounds.Next()) {
    for (int step = 1; step < work.n_ranks; ++step) {
      const int owner = work.Neighbour(step);
      peers.Connect({}, Only(owner));
      co_await peers.Send(work.Input(rounds.At(owner).offset), rounds.At(owner).count);
    }
    const Chunk mine = rounds.At(work.rank);
    for (int rank = 0; rank < work.n_ranks; ++rank) {
      peers.Connect(Only(rank), {});
      if (rank == work.rank) {
        sum.AddOwn(peers.reduction(), work.Input(mine.offset), mine.count, rank == 0);
        continue;
      }
      co_await peers.Recv(sum.received(), mine.count);
      sum.Add(sum.received(), mine.count, rank == 0);
    }
    sum.Finish(work.Output(mine.offset), mine.count);
    for (int step = 1; step < work.n_ranks; ++step) {
      peers.Connect({}, Only(work.Neighbour(step)));
      co_await peers.SendResult(work.Output(mine.offset), mine.count);
    }
    for (int step = 1; step < work.n_ranks; ++step) {
      const int owner = work.Neighbour(-step);
      peers.Connect(Only(owner), {});
      co_await peers.Recv(work.Output(rounds.At(owner).offset), rounds.At(owner).count);
    }
  }
}

// Rank r owns block r: the other ranks send it their inputs, and it keeps the sum.
Lane OrderedReduceScatter(Primitives& peers, const ChannelWork& work) {
  ChunkRounds rounds(work, 1, peers.MaxChunk());
  OrderedAccumulator sum(work, peers.MaxChunk());
  while (rounds.Next()) {
    const auto [offset, count] = rounds.At(0);
    for (int step = 1; step < work.n_ranks; ++step) {
      const int owner = work.Neighbour(step);
      peers.Connect({}, Only(owner));
      co_await peers.Send(work.Input(static_cast<size_t>(owner) * work.count + offset), count);
    }
    for (int rank = 0; rank < work.n_ranks; ++rank) {
      peers.Connect(Only(rank), {});
      if (rank == work.rank) {
        sum.AddOwn(peers.reduction(), work.Input(static_cast<size_t>(rank) * work.count + offset), count,
                   rank == 0);
        continue;
      }
      co_await peers.Recv(sum.received(), count);
      sum.Add(sum.received(), count, rank == 0);
    }
    sum.Finish(work.Output(offset), count);
  }
}

// The root owns all elements: the other ranks send it their inputs, and it keeps the sum.
Lane OrderedReduce(Primitives& peers, const ChannelWork& work) {
  ChunkRounds rounds(work, 1, peers.MaxChunk());
  OrderedAccumulator sum(work, peers.MaxChunk());
  while (rounds.Next()) {
    const auto [offset, count] = rounds.At(0);
    if (work.rank != work.root) {
      peers.Connect({}, Only(work.root));
      co_await peers.Send(work.Input(offset), count);
      continue;
    }
    for (int rank = 0; rank < work.n_ranks; ++rank) {
      peers.Connect(Only(rank), {});
      if (rank == work.rank) {
        sum.AddOwn(peers.reduction(), work.Input(offset), count, rank == 0);
        continue;
      }
      co_await peers.Recv(sum.received(), count);
      sum.Add(sum.received(), count, rank == 0);
    }
    sum.Finish(work.Output(offset), count);
  }
}

}  // namespace dynamiccl::hostccl
