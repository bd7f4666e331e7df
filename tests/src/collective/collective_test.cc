// SPDX-License-Identifier: Apache-2.0
#include "src/collective/collective.h"

#include <gtest/gtest.h>

#include "src/collective/algorithm.h"
#include "src/collective/data_type.h"
#include "src/collective/protocol.h"
#include "src/collective/reduce_op.h"

namespace dynamiccl {
namespace {

TEST(Collective, NamesAreParsedInEverySpelling) {
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(ParseCollective(Name(collective)), collective);
  }
  EXPECT_EQ(ParseCollective("all_reduce"), Collective::kAllReduce);
  EXPECT_EQ(ParseCollective("REDUCE_SCATTER"), Collective::kReduceScatter);
  EXPECT_EQ(ParseCollective("AllToAll"), Collective::kAllToAll);
  EXPECT_EQ(ParseCollective("gatherall"), std::nullopt);
}

TEST(Collective, BytesAreTotalsOverRanksForGatherAndScatter) {
  EXPECT_EQ(TotalBytes(Collective::kAllGather, 10, 4, 8), 320u);
  EXPECT_EQ(TotalBytes(Collective::kReduceScatter, 10, 4, 8), 320u);
  EXPECT_EQ(TotalBytes(Collective::kAllToAll, 10, 4, 8), 320u);
  EXPECT_EQ(TotalBytes(Collective::kAllReduce, 10, 4, 8), 40u);
  EXPECT_EQ(TotalBytes(Collective::kSendRecv, 10, 4, 8), 40u);
}

// Traces contain these numbers, so they must not change.
TEST(Collective, NumbersOfExchangesAreThoseOfNccl) {
  EXPECT_EQ(static_cast<int>(Collective::kAllToAll), 8);
  EXPECT_EQ(static_cast<int>(Collective::kScatter), 9);
  EXPECT_EQ(static_cast<int>(Collective::kGather), 10);
  for (const Collective pair : {Collective::kSend, Collective::kRecv}) {
    EXPECT_TRUE(IsOneSided(pair));
    EXPECT_FALSE(IsExchange(pair));
  }
  for (const Collective exchange :
       {Collective::kSendRecv, Collective::kAllToAll, Collective::kScatter, Collective::kGather}) {
    EXPECT_TRUE(IsExchange(exchange));
    EXPECT_FALSE(IsOneSided(exchange));
  }
  EXPECT_FALSE(IsExchange(Collective::kAllReduce));
}

// NCCL mixes the number of a program's own operator with the communicator's address. The low byte may equal
// that of min.
TEST(Collective, EveryOperatorOfAProgramIsTheSame) {
  for (int op = 0; op < kReduceOps; ++op) EXPECT_EQ(ReduceOpOf(op), static_cast<ReduceOp>(op));
  for (const int op : {kReduceOps, 0x103, 0x7fffffff, -1}) EXPECT_EQ(ReduceOpOf(op), ReduceOp::kPreMulSum);
  EXPECT_EQ(Name(ReduceOp::kPreMulSum), "mulsum");
}

TEST(Collective, BusBandwidthFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kSendRecv, 4), 1);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kBroadcast, 4), 1);
}

TEST(Vocabulary, EveryNameRoundTrips) {
  for (int i = 0; i < kAlgorithms; ++i) {
    EXPECT_EQ(ParseAlgorithm(Name(static_cast<Algorithm>(i))), static_cast<Algorithm>(i));
    EXPECT_EQ(ParseAlgorithm(LogName(static_cast<Algorithm>(i))), static_cast<Algorithm>(i));
  }
  for (int i = 0; i < kProtocols; ++i) {
    EXPECT_EQ(ParseProtocol(LogName(static_cast<Protocol>(i))), static_cast<Protocol>(i));
  }
  for (int i = 0; i < kDataTypes; ++i)
    EXPECT_EQ(ParseDataType(Name(static_cast<DataType>(i))), static_cast<DataType>(i));
  for (int i = 0; i < kReduceOps; ++i)
    EXPECT_EQ(ParseReduceOp(Name(static_cast<ReduceOp>(i))), static_cast<ReduceOp>(i));
  EXPECT_EQ(ParseDataType("ncclFloat32"), DataType::kFloat32);
}

}  // namespace
}  // namespace dynamiccl
