// SPDX-License-Identifier: Apache-2.0
// NCCL's function calcCollChunking in hostccl's units. It halves the chunk as long as a channel has fewer
// chunks than the algorithm needs to keep its levels busy.
#include "src/hostccl/chunk_size.h"

#include <bit>

#include "src/transport/fifo.h"

namespace dynamiccl::hostccl {
namespace {

// A chunk fills two slots of a FIFO. A FIFO has four slots (Simple) or eight (LL, LL128), so it can hold
// further chunks meanwhile.
constexpr size_t kSlotsPerChunk = 2;

// NCCL's chunk sizes, scaled to hostccl's slots, in bytes. One slot corresponds to one of NCCL's eight steps.
// A step of Simple has 512 KiB in NCCL and 128 KiB here, so 128, 64 and 32 KiB become a quarter. A step of
// LL128 has 600 KiB in NCCL and 60 KiB here, so 128 and 32 KiB become a tenth.
constexpr size_t kTreeSteps[] = {32 << 10, 16 << 10, 8 << 10};
constexpr uint64_t kTreeChunksPerLevel[] = {8, 4, 1};
constexpr size_t kTreeLl128Steps[] = {13 << 10, 3 << 10};
constexpr double kTreeLl128Chunks[] = {64, 16};
constexpr size_t kPatStep = 16 << 10;
constexpr uint64_t kPatAllGatherChunks = 32;
constexpr uint64_t kPatReduceScatterChunks = 16;

int FloorLog2(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
}

// Returns the number of levels between a leaf and the root: those between nodes plus those inside a node.
// hostccl's tree inside a node is binary; NCCL's is a chain.
int TreeDepth(const ChunkSizeQuery& query) {
  return FloorLog2(query.n_nodes) + FloorLog2(query.n_ranks / query.n_nodes);
}

// Returns how many chunks of this size each channel has.
uint64_t ChunksOf(const ChunkSizeQuery& query, size_t chunk) {
  return query.bytes / (query.config.channels * chunk);
}

// Tree with Simple: the chunk is made smaller in up to three steps. A step is taken while a channel has fewer
// than 8, 4 or 1 chunks for each level of the tree.
size_t TreeSimple(const ChunkSizeQuery& query) {
  const auto depth = static_cast<uint64_t>(TreeDepth(query));
  size_t chunk = kSlotBytes;
  for (size_t i = 0; i < std::size(kTreeSteps); ++i) {
    while (ChunksOf(query, chunk) < depth * kTreeChunksPerLevel[i] && chunk > kTreeSteps[i]) chunk /= 2;
  }
  return chunk;
}

// Tree with LL128: the chunk is made smaller in up to two steps. As in NCCL, the number of levels is that
// between nodes plus a tenth of the ranks of a node.
size_t TreeLl128(const ChunkSizeQuery& query) {
  const double ranks_per_node = static_cast<double>(query.n_ranks) / query.n_nodes;
  const double steps = 1 + FloorLog2(query.n_nodes) + 0.1 * ranks_per_node;
  size_t chunk = kLl128SlotBytes;
  for (size_t i = 0; i < std::size(kTreeLl128Steps); ++i) {
    const double enough = steps * kTreeLl128Chunks[i] / ranks_per_node;
    while (static_cast<double>(ChunksOf(query, chunk)) < enough && chunk > kTreeLl128Steps[i]) chunk /= 2;
  }
  return chunk;
}

// PAT: the chunk is halved, down to 16 KiB, while a channel has fewer chunks than the algorithm needs to keep
// all its steps in progress.
size_t Pat(const ChunkSizeQuery& query) {
  const uint64_t chunks =
      query.collective == Collective::kAllGather ? kPatAllGatherChunks : kPatReduceScatterChunks;
  size_t chunk = kSlotBytes;
  while (ChunksOf(query, chunk) < chunks && chunk > kPatStep) chunk /= 2;
  return chunk;
}

}  // namespace

size_t MostChunkBytes(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLL:
      return kSlotsPerChunk * kLlSlotBytes;
    case Protocol::kLL128:
      return kSlotsPerChunk * kLl128SlotBytes;
    default:
      return kSlotsPerChunk * kSlotBytes;
  }
}

size_t DefaultChunkBytes(const ChunkSizeQuery& query) {
  const Protocol protocol = query.config.protocol;
  if (query.config.algorithm == Algorithm::kPat) return Pat(query);
  if (query.config.algorithm == Algorithm::kTree && protocol == Protocol::kSimple) return TreeSimple(query);
  if (query.config.algorithm == Algorithm::kTree && protocol == Protocol::kLL128) return TreeLl128(query);
  return MostChunkBytes(protocol);
}

}  // namespace dynamiccl::hostccl
