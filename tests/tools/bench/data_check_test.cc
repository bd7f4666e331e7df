// SPDX-License-Identifier: Apache-2.0
// Tests the checker itself. Correct results pass for every type and operator, and the checker finds any
// single wrong element.
#include "tools/bench/data_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamiccl {
namespace {

constexpr DataType kTypes[] = {DataType::kInt8,     DataType::kUint8,      DataType::kInt32,
                               DataType::kUint32,   DataType::kInt64,      DataType::kUint64,
                               DataType::kFloat16,  DataType::kFloat32,    DataType::kFloat64,
                               DataType::kBfloat16, DataType::kFloat8e4m3, DataType::kFloat8e5m2};

using enum TestedCollective;

double Combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return std::fmax(a, b);
    case ReduceOp::kMin:
      return std::fmin(a, b);
    default:
      return a + b;
  }
}

// Returns the origin of element `i` that `rank` receives: {sender, index in the sender's buffer}. Only for
// collectives that do not reduce.
std::pair<int, uint64_t> Source(const CheckedCall& call, int rank, uint64_t i) {
  const auto r = static_cast<uint64_t>(rank);
  switch (call.collective) {
    case kBroadcast:
      return {call.root, i};
    case kScatter:
      return {call.root, r * call.count + i};
    case kAlltoAll:
      return {static_cast<int>(i / call.count), r * call.count + i % call.count};
    case kSendRecv:
      return {rank == 0 ? call.n_ranks - 1 : rank - 1, i};
    default:
      return {static_cast<int>(i / call.count), i % call.count};
  }
}

// A separate serial reference. It decodes the inputs of all ranks and combines them in double.
std::vector<std::byte> Reference(const CheckedCall& call, int rank) {
  const size_t width = ElementBytes(call.type);
  std::vector<std::vector<std::byte>> inputs;
  for (int r = 0; r < call.n_ranks; ++r) inputs.push_back(InputOf(call, r));
  const auto value = [&](int r, uint64_t i) {
    return LoadElement(call.type, inputs[static_cast<size_t>(r)].data() + i * width);
  };
  std::vector<std::byte> output(ReceiveCount(call) * width);
  for (uint64_t i = 0; i < ReceiveCount(call); ++i) {
    const auto [sender, index] = Source(call, rank, i);
    double result = 0;
    if (!Reduces(call.collective)) {
      result = value(sender, index);
    } else {
      const uint64_t at =
          call.collective == kReduceScatter ? static_cast<uint64_t>(rank) * call.count + i : i;
      result = value(0, at);
      for (int r = 1; r < call.n_ranks; ++r) result = Combine(call.op, result, value(r, at));
      if (call.doubled) result *= 2;
      if (call.op == ReduceOp::kAvg) result /= call.n_ranks;
    }
    StoreElement(call.type, output.data() + i * width, result);
  }
  return output;
}

void ExpectOneWrongElementIsFound(const CheckedCall& call, int rank) {
  std::vector<std::byte> output = Reference(call, rank);
  ASSERT_EQ(CountWrong(call, rank, output), 0u)
      << ProgramName(call.collective) << Name(call.type) << Name(call.op);
  if (!HasResult(call, rank)) return;
  StoreElement(call.type, output.data() + 7 * ElementBytes(call.type), 56);
  ASSERT_EQ(CountWrong(call, rank, output), 1u)
      << ProgramName(call.collective) << Name(call.type) << Name(call.op);
}

TEST(DataCheck, RightResultsPassAndOneWrongElementIsFound) {
  for (int c = 0; c < kTestedCollectives; ++c) {
    for (const DataType type : kTypes) {
      for (int op = 0; op < kReduceOps; ++op) {
        CheckedCall call{static_cast<TestedCollective>(c), 33, type, static_cast<ReduceOp>(op), 1, 4};
        for (call.repetition = 0; call.repetition < 2; ++call.repetition) {
          for (int rank = 0; rank < call.n_ranks; ++rank) ExpectOneWrongElementIsFound(call, rank);
        }
      }
    }
  }
}

TEST(DataCheck, DoubledSumsAreTwiceTheSum) {
  for (const DataType type : kTypes) {
    const CheckedCall call{kAllReduce, 33, type, ReduceOp::kSum, 0, 4, true};
    ExpectOneWrongElementIsFound(call, 0);
  }
}

// Data that an earlier check left behind must not pass for the next check's result.
TEST(DataCheck, RepetitionsHaveOtherData) {
  for (int c = 0; c < kTestedCollectives; ++c) {
    CheckedCall call{static_cast<TestedCollective>(c), 40, DataType::kFloat32, ReduceOp::kSum, 0, 4};
    const std::vector<std::byte> first = InputOf(call, 1);
    call.repetition = 1;
    EXPECT_NE(InputOf(call, 1), first) << ProgramName(call.collective);
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
  for (const double value : {0.0, 0.25, 1.0, 3.0, 8.0, -6.0}) {
    StoreElement(DataType::kFloat8e4m3, element, value);
    EXPECT_EQ(LoadElement(DataType::kFloat8e4m3, element), value);
    StoreElement(DataType::kFloat8e5m2, element, value);
    EXPECT_EQ(LoadElement(DataType::kFloat8e5m2, element), value);
  }
  StoreElement(DataType::kFloat8e4m3, element, 1.0);
  EXPECT_EQ(element[0], std::byte{0x38});
  StoreElement(DataType::kFloat8e5m2, element, -1.0);
  EXPECT_EQ(element[0], std::byte{0xbc});
}

}  // namespace
}  // namespace dynamiccl
