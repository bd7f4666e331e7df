// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/chunk_size.h"

#include <gtest/gtest.h>

namespace dynamiccl::hostccl {
namespace {

size_t Chunk(Collective collective, CollectiveConfig config, uint64_t bytes, int n_ranks, int n_nodes) {
  return DefaultChunkBytes({collective, config, bytes, n_ranks, n_nodes});
}

// The values follow by hand from NCCL's rule. The chunk is halved while a channel has too few chunks per tree
// level: fewer than 8 above 32 KiB, 4 above 16 KiB, or 1 above 8 KiB.
TEST(ChunkSize, TreesUnderSimpleShrinkWithTheMessage) {
  constexpr CollectiveConfig kTwo{Algorithm::kTree, Protocol::kSimple, 2};
  const auto chunk = [&](uint64_t bytes) { return Chunk(Collective::kAllReduce, kTwo, bytes, 4, 4); };
  EXPECT_EQ(chunk(uint64_t{64} << 20), 128u << 10);
  EXPECT_EQ(chunk(uint64_t{2} << 20), 64u << 10);  // The tree's depth is 2, and a channel has 16 chunks.
  EXPECT_EQ(chunk(uint64_t{1} << 20), 32u << 10);
  EXPECT_EQ(chunk(uint64_t{256} << 10), 16u << 10);  // A channel has 8 chunks, which are 4 per level.
  EXPECT_EQ(chunk(1000), 8u << 10);
}

TEST(ChunkSize, TreesUnderLL128ShrinkWithTheMessage) {
  constexpr CollectiveConfig kOne{Algorithm::kTree, Protocol::kLL128, 1};
  // Four nodes with one rank each give 3.1 steps. The limits are 198.4 chunks above 13 KiB and 49.6 above 3
  // KiB.
  EXPECT_EQ(Chunk(Collective::kAllReduce, kOne, uint64_t{64} << 20, 4, 4), 60u << 10);
  EXPECT_EQ(Chunk(Collective::kAllReduce, kOne, uint64_t{4} << 20, 4, 4), 15u << 10);
  EXPECT_EQ(Chunk(Collective::kAllReduce, kOne, 1000, 4, 4), (60u << 10) / 32);
}

TEST(ChunkSize, PatShrinksToSixteenKibibytes) {
  constexpr CollectiveConfig kTwo{Algorithm::kPat, Protocol::kSimple, 2};
  EXPECT_EQ(Chunk(Collective::kAllGather, kTwo, uint64_t{64} << 20, 4, 4), 128u << 10);
  EXPECT_EQ(Chunk(Collective::kAllGather, kTwo, uint64_t{4} << 20, 4, 4), 64u << 10);
  EXPECT_EQ(Chunk(Collective::kReduceScatter, kTwo, uint64_t{4} << 20, 4, 4), 128u << 10);
  EXPECT_EQ(Chunk(Collective::kReduceScatter, kTwo, 1, 4, 4), 16u << 10);
}

TEST(ChunkSize, RingsAndTreesUnderLLKeepTheProtocols) {
  const auto chunk = [](Algorithm algorithm, Protocol protocol) {
    return Chunk(Collective::kAllReduce, {algorithm, protocol, 1}, 1000, 4, 1);
  };
  EXPECT_EQ(chunk(Algorithm::kRing, Protocol::kSimple), 256u << 10);
  EXPECT_EQ(chunk(Algorithm::kRing, Protocol::kLL), 16u << 10);
  EXPECT_EQ(chunk(Algorithm::kTree, Protocol::kLL), 16u << 10);
  EXPECT_EQ(chunk(Algorithm::kRing, Protocol::kLL128), 120u << 10);
}

}  // namespace
}  // namespace dynamiccl::hostccl
