// SPDX-License-Identifier: Apache-2.0
#include "src/decision/chunk_choice.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kRing{Algorithm::kRing, Protocol::kSimple, 2};
constexpr CollectiveConfig kTree{Algorithm::kTree, Protocol::kLL, 2};

uint64_t ForRing(const ChunkChoice& chunks, uint64_t call, Collective collective = Collective::kAllReduce) {
  return chunks.ChunkBytes(call, collective, Algorithm::kRing, Protocol::kSimple);
}

TEST(ChunkChoice, IsForTheCallItsCollectiveAndWhatTheRuleChose) {
  ChunkChoice chunks;
  EXPECT_EQ(ForRing(chunks, 0), 0u);
  chunks.Note(7, Collective::kAllReduce, kRing, 4096);
  EXPECT_EQ(ForRing(chunks, 7), 4096u);
  EXPECT_EQ(ForRing(chunks, 8), 0u);
  EXPECT_EQ(ForRing(chunks, 7, Collective::kAllGather), 0u);
  EXPECT_EQ(chunks.ChunkBytes(7, Collective::kAllReduce, Algorithm::kRing, Protocol::kLL), 0u);
  EXPECT_EQ(chunks.ChunkBytes(7, Collective::kAllReduce, Algorithm::kTree, Protocol::kSimple), 0u);
}

TEST(ChunkChoice, IsKeptWhereAllBatchesOfTheCallAreAlike) {
  ChunkChoice chunks;
  chunks.Note(7, Collective::kAllReduce, kRing, 4096);
  chunks.Note(7, Collective::kAllGather, kRing, 8192);
  // The number of channels may differ from batch to batch.
  chunks.Note(7, Collective::kAllReduce, {Algorithm::kRing, Protocol::kSimple, 8}, 4096);
  EXPECT_EQ(ForRing(chunks, 7), 4096u);
  EXPECT_EQ(ForRing(chunks, 7, Collective::kAllGather), 8192u);
}

// A question about a chunk does not name its batch.
TEST(ChunkChoice, IsNcclsWhereBatchesOfTheCallDiffer) {
  struct Other {
    CollectiveConfig config;
    uint64_t bytes;
  };
  for (const Other& other : {Other{kRing, 8192}, Other{kTree, 4096}, Other{kLeaveNcclAlone, 0}}) {
    ChunkChoice chunks;
    chunks.Note(7, Collective::kAllReduce, kRing, 4096);
    chunks.Note(7, Collective::kAllReduce, other.config, other.bytes);
    chunks.Note(7, Collective::kAllReduce, kRing, 4096);
    EXPECT_EQ(ForRing(chunks, 7), 0u);
    chunks.Note(8, Collective::kAllReduce, kRing, 4096);
    EXPECT_EQ(ForRing(chunks, 8), 4096u);
  }
}

}  // namespace
}  // namespace dynamiccl
