// SPDX-License-Identifier: Apache-2.0
// Computes one element of a benchmark's test data: what a rank sends at an index, what a rank must receive
// there, and whether the received element is correct. The same functions run on the host (data_check.cc) and
// on a GPU (device_kernels.cu), so tests on the host cover both. All values are small whole numbers, which
// are exact in every type.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "tools/bench/tested_collective.h"

#ifdef __CUDACC__
#define DYNAMICCL_HOST_DEVICE __host__ __device__
#else
#define DYNAMICCL_HOST_DEVICE
#endif

namespace dynamiccl {

// The parameters of a call that determine its test data. GPU kernels receive the struct by value.
struct CheckedCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  // The count that NCCL's function for the collective takes.
  uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  int n_ranks = 1;
  // True: every rank's data counts twice, as with nccl-tests' operator mulsum.
  bool doubled = false;
  // Number of the check. It shifts the test data, so that each check has other values.
  uint64_t repetition = 0;
};

namespace element {

template <typename T>
DYNAMICCL_HOST_DEVICE double Load(const std::byte* from) {
  T value;
  memcpy(&value, from, sizeof(value));
  return static_cast<double>(value);
}

template <typename T>
DYNAMICCL_HOST_DEVICE void Store(std::byte* to, double value) {
  const auto typed = static_cast<T>(value);
  memcpy(to, &typed, sizeof(typed));
}

// Layout of a floating type narrower than float: one sign bit, exponent, mantissa.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  DYNAMICCL_HOST_DEVICE int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  DYNAMICCL_HOST_DEVICE size_t bytes() const {
    return static_cast<size_t>(exponent_bits + mantissa_bits + 1) / 8;
  }
};

DYNAMICCL_HOST_DEVICE inline bool IsSmallFloat(DataType type) {
  return type == DataType::kFloat16 || type >= DataType::kBfloat16;
}

// Layout of a type for which IsSmallFloat holds.
DYNAMICCL_HOST_DEVICE inline SmallFloat ShapeOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {5, 10};
    case DataType::kBfloat16:
      return {8, 7};
    case DataType::kFloat8e4m3:
      return {4, 3};
    default:
      return {5, 2};
  }
}

// Decodes normal and subnormal numbers; infinities and NaN do not occur here.
DYNAMICCL_HOST_DEVICE inline double LoadSmall(SmallFloat shape, const std::byte* from) {
  uint16_t bits = 0;
  memcpy(&bits, from, shape.bytes());
  const int exponent = bits >> shape.mantissa_bits & ((1 << shape.exponent_bits) - 1);
  const int mantissa = bits & ((1 << shape.mantissa_bits) - 1);
  const int sign = bits >> (shape.mantissa_bits + shape.exponent_bits) & 1;
  const int implicit = exponent == 0 ? 0 : 1 << shape.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - shape.bias() - shape.mantissa_bits;
  const double magnitude = ldexp(static_cast<double>(implicit + mantissa), power);
  return sign != 0 ? -magnitude : magnitude;
}

// Encodes zero and normal numbers, rounding to nearest even. The test data has no others.
DYNAMICCL_HOST_DEVICE inline void StoreSmall(SmallFloat shape, std::byte* to, double value) {
  int bits = 0;
  if (value != 0) {
    int exponent = 0;
    const double fraction = frexp(fabs(value), &exponent);  // 0.5 to 1
    const auto mantissa = static_cast<int>(nearbyint(ldexp(fraction, shape.mantissa_bits + 1)));
    // A mantissa that rounds up to the next power of two carries into the exponent by itself.
    bits = ((exponent - 1 + shape.bias()) << shape.mantissa_bits) + mantissa - (1 << shape.mantissa_bits);
    if (value < 0) bits |= 1 << (shape.mantissa_bits + shape.exponent_bits);
  }
  const auto word = static_cast<uint16_t>(bits);
  memcpy(to, &word, shape.bytes());
}

// True if sums must stay small to be exact: float8 has 3 or 4 significant bits, and int8 ends at 127.
DYNAMICCL_HOST_DEVICE inline bool IsNarrow(const CheckedCall& call) {
  const bool byte_wide = call.type <= DataType::kUint8 || call.type >= DataType::kFloat8e4m3;
  return call.type >= DataType::kFloat8e4m3 || (byte_wide && call.n_ranks > 15);
}

// The value that `rank` sends at index `i`: 1 to 4. For sums of narrow types it is 0 or 1. For products it is
// 2 on one rank and 1 elsewhere, so that nothing overflows.
DYNAMICCL_HOST_DEVICE inline double InputValue(const CheckedCall& call, int rank, uint64_t i) {
  const uint64_t at = i + call.repetition;
  const auto r = static_cast<uint64_t>(rank);
  if (!Reduces(call.collective)) return static_cast<double>((at + 3 * r) % 4 + 1);
  if (call.op == ReduceOp::kProd) return at % static_cast<uint64_t>(call.n_ranks) == r ? 2 : 1;
  if (IsNarrow(call)) return (at + r) % 3 == 0 ? 1 : 0;
  return static_cast<double>((at + r) % 4 + 1);
}

// The operator's result for two values. For kAvg it is the sum, which Reduced divides by the number of ranks.
DYNAMICCL_HOST_DEVICE inline double Combined(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return fmax(a, b);
    case ReduceOp::kMin:
      return fmin(a, b);
    default:
      return a + b;
  }
}

// The reduction of all ranks' values at index `i`.
DYNAMICCL_HOST_DEVICE inline double Reduced(const CheckedCall& call, uint64_t i) {
  double result = InputValue(call, 0, i);
  for (int rank = 1; rank < call.n_ranks; ++rank)
    result = Combined(call.op, result, InputValue(call, rank, i));
  if (call.doubled) result *= 2;
  return call.op == ReduceOp::kAvg ? result / call.n_ranks : result;
}

// The value that `rank` must hold at index `i` of its receive buffer.
DYNAMICCL_HOST_DEVICE inline double Expected(const CheckedCall& call, int rank, uint64_t i) {
  const auto r = static_cast<uint64_t>(rank);
  switch (call.collective) {
    case TestedCollective::kAllGather:
    case TestedCollective::kGather:
    case TestedCollective::kHypercube:
      return InputValue(call, static_cast<int>(i / call.count), i % call.count);
    case TestedCollective::kReduceScatter:
      return Reduced(call, r * call.count + i);
    case TestedCollective::kBroadcast:
      return InputValue(call, call.root, i);
    case TestedCollective::kScatter:
      return InputValue(call, call.root, r * call.count + i);
    case TestedCollective::kAlltoAll:
      return InputValue(call, static_cast<int>(i / call.count), r * call.count + i % call.count);
    case TestedCollective::kSendRecv:
      return InputValue(call, (rank + call.n_ranks - 1) % call.n_ranks, i);
    default:
      return Reduced(call, i);
  }
}

// Relative error allowed in an average, which need not be a whole number. All other results must be exact.
DYNAMICCL_HOST_DEVICE inline double Tolerance(const CheckedCall& call) {
  if (call.op != ReduceOp::kAvg || !Reduces(call.collective)) return 0;
  switch (call.type) {
    case DataType::kFloat16:
      return 4e-3;
    case DataType::kBfloat16:
      return 3e-2;
    case DataType::kFloat8e4m3:
      return 0.25;
    case DataType::kFloat8e5m2:
      return 0.5;
    case DataType::kFloat32:
      return 1e-6;
    case DataType::kFloat64:
      return 1e-14;
    default:
      return 0;
  }
}

DYNAMICCL_HOST_DEVICE inline double LoadTyped(DataType type, const std::byte* from) {
  if (IsSmallFloat(type)) return LoadSmall(ShapeOf(type), from);
  switch (type) {
    case DataType::kInt8:
      return Load<int8_t>(from);
    case DataType::kUint8:
      return Load<uint8_t>(from);
    case DataType::kInt32:
      return Load<int32_t>(from);
    case DataType::kUint32:
      return Load<uint32_t>(from);
    case DataType::kInt64:
      return Load<int64_t>(from);
    case DataType::kUint64:
      return Load<uint64_t>(from);
    case DataType::kFloat32:
      return Load<float>(from);
    default:
      return Load<double>(from);
  }
}

DYNAMICCL_HOST_DEVICE inline void StoreTyped(DataType type, std::byte* to, double value) {
  if (IsSmallFloat(type)) return StoreSmall(ShapeOf(type), to, value);
  switch (type) {
    case DataType::kInt8:
      return Store<int8_t>(to, value);
    case DataType::kUint8:
      return Store<uint8_t>(to, value);
    case DataType::kInt32:
      return Store<int32_t>(to, value);
    case DataType::kUint32:
      return Store<uint32_t>(to, value);
    case DataType::kInt64:
      return Store<int64_t>(to, value);
    case DataType::kUint64:
      return Store<uint64_t>(to, value);
    case DataType::kFloat32:
      return Store<float>(to, value);
    default:
      return Store<double>(to, value);
  }
}

// True if the element received at index `i` is wrong. The comparison is written with a negation so that NaN
// counts as wrong.
DYNAMICCL_HOST_DEVICE inline bool IsWrong(const CheckedCall& call, int rank, uint64_t i,
                                          const std::byte* received) {
  double expected = Expected(call, rank, i);
  // Averages of integers are truncated.
  if (call.type <= DataType::kUint64) expected = trunc(expected);
  return !(fabs(LoadTyped(call.type, received) - expected) <= Tolerance(call) * fabs(expected));
}

}  // namespace element
}  // namespace dynamiccl
