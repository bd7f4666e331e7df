// SPDX-License-Identifier: Apache-2.0
// The checker itself: right results pass in every type and operator, any single wrong element is found.
#include "tools/bench/data_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamiccl {
namespace {

constexpr DataType kTypes[] = {DataType::kInt8,    DataType::kUint8,   DataType::kInt32,   DataType::kUint32,
                               DataType::kInt64,   DataType::kUint64,  DataType::kFloat16, DataType::kFloat32,
                               DataType::kFloat64, DataType::kBfloat16};

// A serial reference of its own: decodes what all ranks send and combines it in double.
std::vector<std::byte> Reference(const CheckedCall& call, int rank) {
  const size_t width = ElementBytes(call.type);
  std::vector<std::vector<std::byte>> inputs;
  for (int r = 0; r < call.n_ranks; ++r) inputs.push_back(InputOf(call, r));
  const auto value = [&](int r, uint64_t i) {
    return LoadElement(call.type, inputs[static_cast<size_t>(r)].data() + i * width);
  };
  std::vector<std::byte> output(ReceiveCount(call) * width);
  for (uint64_t i = 0; i < ReceiveCount(call); ++i) {
    double result = 0;
    if (call.collective == Collective::kAllGather) {
      result = value(static_cast<int>(i / call.count), i % call.count);
    } else if (call.collective == Collective::kBroadcast) {
      result = value(call.root, i);
    } else {
      const uint64_t at =
          call.collective == Collective::kReduceScatter ? static_cast<uint64_t>(rank) * call.count + i : i;
      result = value(0, at);
      for (int r = 1; r < call.n_ranks; ++r) {
        const double next = value(r, at);
        if (call.op == ReduceOp::kProd)
          result *= next;
        else if (call.op == ReduceOp::kMax)
          result = std::fmax(result, next);
        else if (call.op == ReduceOp::kMin)
          result = std::fmin(result, next);
        else
          result += next;
      }
      if (call.op == ReduceOp::kAvg) result /= call.n_ranks;
    }
    StoreElement(call.type, output.data() + i * width, result);
  }
  return output;
}

TEST(DataCheck, RightResultsPassAndOneWrongElementIsFound) {
  for (int c = 0; c < kTunableCollectives; ++c) {
    for (const DataType type : kTypes) {
      for (int op = 0; op < kReduceOps; ++op) {
        const CheckedCall call{static_cast<Collective>(c), 33, type, static_cast<ReduceOp>(op), 1, 3};
        for (int rank = 0; rank < call.n_ranks; ++rank) {
          std::vector<std::byte> output = Reference(call, rank);
          ASSERT_EQ(CountWrong(call, rank, output), 0u) << Name(call.collective) << Name(type) << op;
          if (call.collective == Collective::kReduce && rank != call.root) continue;
          StoreElement(type, output.data() + 7 * ElementBytes(type), 60);
          ASSERT_EQ(CountWrong(call, rank, output), 1u) << Name(call.collective) << Name(type) << op;
        }
      }
    }
  }
}

TEST(DataCheck, SmallTypesRoundToNearest) {
  std::byte element[2];
  for (const double value : {0.0, 1.0, 2.5, 96.0, 1.0 / 3, 2047.0, 60000.0, -3.75}) {
    StoreElement(DataType::kFloat16, element, value);
    EXPECT_NEAR(LoadElement(DataType::kFloat16, element), value, std::abs(value) / 2048);
    StoreElement(DataType::kBfloat16, element, value);
    EXPECT_NEAR(LoadElement(DataType::kBfloat16, element), value, std::abs(value) / 256);
  }
  StoreElement(DataType::kFloat16, element, 1.9999);
  EXPECT_EQ(LoadElement(DataType::kFloat16, element), 2.0) << "rounding may carry into the exponent";
}

}  // namespace
}  // namespace dynamiccl
