// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/data_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace dynamiccl {
namespace {

template <typename T>
double Load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(value));
  return static_cast<double>(value);
}

template <typename T>
void Store(std::byte* element, double value) {
  const auto typed = static_cast<T>(value);
  std::memcpy(element, &typed, sizeof(typed));
}

double LoadBfloat16(const std::byte* element) {
  uint16_t bits;
  std::memcpy(&bits, element, sizeof(bits));
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

void StoreBfloat16(std::byte* element, double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const auto rounded = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  std::memcpy(element, &rounded, sizeof(rounded));
}

double LoadFloat16(const std::byte* element) {
  uint16_t bits;
  std::memcpy(&bits, element, sizeof(bits));
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Normal numbers below 65504 only: all that this file makes.
void StoreFloat16(std::byte* element, double value) {
  uint16_t bits = 0;
  if (value != 0) {
    int exponent = 0;
    const double fraction = std::frexp(std::abs(value), &exponent);  // 0.5 to 1
    const auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, 11)));
    bits = static_cast<uint16_t>((exponent + 14) * 1024 + (mantissa - 1024) + (value < 0 ? 0x8000 : 0));
  }
  std::memcpy(element, &bits, sizeof(bits));
}

// Value that `rank` contributes at index `i`: 1 to 4; for products 2 on one rank and 1 elsewhere, so that
// nothing overflows.
double InputValue(const CheckedCall& call, int rank, uint64_t i) {
  const auto r = static_cast<uint64_t>(rank);
  if (call.op == ReduceOp::kProd) return i % static_cast<uint64_t>(call.n_ranks) == r ? 2 : 1;
  return static_cast<double>((i + r) % 4 + 1);
}

double Reduced(const CheckedCall& call, uint64_t i) {
  double result = InputValue(call, 0, i);
  for (int rank = 1; rank < call.n_ranks; ++rank) {
    const double value = InputValue(call, rank, i);
    switch (call.op) {
      case ReduceOp::kProd:
        result *= value;
        break;
      case ReduceOp::kMax:
        result = std::max(result, value);
        break;
      case ReduceOp::kMin:
        result = std::min(result, value);
        break;
      default:
        result += value;
    }
  }
  return call.op == ReduceOp::kAvg ? result / call.n_ranks : result;
}

double Expected(const CheckedCall& call, int rank, uint64_t i) {
  switch (call.collective) {
    case Collective::kAllGather:
      return InputValue(call, static_cast<int>(i / call.count), i % call.count);
    case Collective::kReduceScatter:
      return Reduced(call, static_cast<uint64_t>(rank) * call.count + i);
    case Collective::kBroadcast:
      return InputValue(call, call.root, i);
    default:
      return Reduced(call, i);
  }
}

// Relative error allowed to an average; all else is exact.
double Tolerance(const CheckedCall& call) {
  if (call.op != ReduceOp::kAvg) return 0;
  switch (call.type) {
    case DataType::kFloat16:
      return 4e-3;
    case DataType::kBfloat16:
      return 3e-2;
    case DataType::kFloat32:
      return 1e-6;
    case DataType::kFloat64:
      return 1e-14;
    default:
      return 0;
  }
}

bool IsInteger(DataType type) {
  return type <= DataType::kUint64;
}

}  // namespace

double LoadElement(DataType type, const std::byte* element) {
  switch (type) {
    case DataType::kInt8:
      return Load<int8_t>(element);
    case DataType::kUint8:
      return Load<uint8_t>(element);
    case DataType::kInt32:
      return Load<int32_t>(element);
    case DataType::kUint32:
      return Load<uint32_t>(element);
    case DataType::kInt64:
      return Load<int64_t>(element);
    case DataType::kUint64:
      return Load<uint64_t>(element);
    case DataType::kFloat16:
      return LoadFloat16(element);
    case DataType::kFloat32:
      return Load<float>(element);
    case DataType::kFloat64:
      return Load<double>(element);
    case DataType::kBfloat16:
      return LoadBfloat16(element);
    default:
      return 0;
  }
}

void StoreElement(DataType type, std::byte* element, double value) {
  switch (type) {
    case DataType::kInt8:
      return Store<int8_t>(element, value);
    case DataType::kUint8:
      return Store<uint8_t>(element, value);
    case DataType::kInt32:
      return Store<int32_t>(element, value);
    case DataType::kUint32:
      return Store<uint32_t>(element, value);
    case DataType::kInt64:
      return Store<int64_t>(element, value);
    case DataType::kUint64:
      return Store<uint64_t>(element, value);
    case DataType::kFloat16:
      return StoreFloat16(element, value);
    case DataType::kFloat32:
      return Store<float>(element, value);
    case DataType::kFloat64:
      return Store<double>(element, value);
    case DataType::kBfloat16:
      return StoreBfloat16(element, value);
    default:
      return;
  }
}

uint64_t SendCount(const CheckedCall& call) {
  return call.collective == Collective::kReduceScatter ? call.count * static_cast<uint64_t>(call.n_ranks)
                                                       : call.count;
}

uint64_t ReceiveCount(const CheckedCall& call) {
  return call.collective == Collective::kAllGather ? call.count * static_cast<uint64_t>(call.n_ranks)
                                                   : call.count;
}

std::vector<std::byte> InputOf(const CheckedCall& call, int rank) {
  const size_t width = ElementBytes(call.type);
  std::vector<std::byte> input(SendCount(call) * width);
  for (uint64_t i = 0; i < SendCount(call); ++i) {
    StoreElement(call.type, input.data() + i * width, InputValue(call, rank, i));
  }
  return input;
}

uint64_t CountWrong(const CheckedCall& call, int rank, const std::vector<std::byte>& received) {
  if (call.collective == Collective::kReduce && rank != call.root) return 0;
  const size_t width = ElementBytes(call.type);
  const double tolerance = Tolerance(call);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < ReceiveCount(call); ++i) {
    double expected = Expected(call, rank, i);
    if (IsInteger(call.type)) expected = std::trunc(expected);
    const double got = LoadElement(call.type, received.data() + i * width);
    wrong += !(std::abs(got - expected) <= tolerance * std::abs(expected));
  }
  return wrong;
}

}  // namespace dynamiccl
