// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/data_check.h"

#include <algorithm>
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

// A floating type narrower than float: sign, exponent, mantissa.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

SmallFloat ShapeOf(DataType type) {
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

bool IsSmallFloat(DataType type) {
  return type == DataType::kFloat16 || type >= DataType::kBfloat16;
}

double LoadSmall(DataType type, const std::byte* element) {
  const SmallFloat shape = ShapeOf(type);
  uint16_t bits = 0;
  std::memcpy(&bits, element, ElementBytes(type));
  const int exponent = bits >> shape.mantissa_bits & ((1 << shape.exponent_bits) - 1);
  const int mantissa = bits & ((1 << shape.mantissa_bits) - 1);
  const int sign = bits >> (shape.mantissa_bits + shape.exponent_bits) & 1;
  const int implicit = exponent == 0 ? 0 : 1 << shape.mantissa_bits;
  const double magnitude =
      std::ldexp(implicit + mantissa, std::max(exponent, 1) - shape.bias() - shape.mantissa_bits);
  return sign != 0 ? -magnitude : magnitude;
}

// Normal numbers only: all that this file makes.
void StoreSmall(DataType type, std::byte* element, double value) {
  const SmallFloat shape = ShapeOf(type);
  int bits = 0;
  if (value != 0) {
    int exponent = 0;
    const double fraction = std::frexp(std::abs(value), &exponent);  // 0.5 to 1
    const auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, shape.mantissa_bits + 1)));
    // A mantissa that rounds up to the next power of two carries into the exponent by itself.
    bits = ((exponent - 1 + shape.bias()) << shape.mantissa_bits) + mantissa - (1 << shape.mantissa_bits);
    if (value < 0) bits |= 1 << (shape.mantissa_bits + shape.exponent_bits);
  }
  const auto word = static_cast<uint16_t>(bits);
  std::memcpy(element, &word, ElementBytes(type));
}

// Types whose sums must stay small to be exact: float8 has 3 or 4 significant bits, int8 ends at 127.
bool IsNarrow(const CheckedCall& call) {
  return call.type >= DataType::kFloat8e4m3 || (ElementBytes(call.type) == 1 && call.n_ranks > 15);
}

// Value that `rank` contributes at index `i`: 1 to 4, sums of narrow types 0 or 1; for products 2 on one rank
// and 1 elsewhere, so that nothing overflows.
double InputValue(const CheckedCall& call, int rank, uint64_t i) {
  const uint64_t at = i + call.repetition;
  const auto r = static_cast<uint64_t>(rank);
  if (!Reduces(call.collective)) return static_cast<double>((at + 3 * r) % 4 + 1);
  if (call.op == ReduceOp::kProd) return at % static_cast<uint64_t>(call.n_ranks) == r ? 2 : 1;
  if (IsNarrow(call)) return (at + r) % 3 == 0 ? 1 : 0;
  return static_cast<double>((at + r) % 4 + 1);
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
  if (call.doubled) result *= 2;
  return call.op == ReduceOp::kAvg ? result / call.n_ranks : result;
}

double Expected(const CheckedCall& call, int rank, uint64_t i) {
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

// Relative error allowed to an average; all else is exact.
double Tolerance(const CheckedCall& call) {
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

bool IsInteger(DataType type) {
  return type <= DataType::kUint64;
}

}  // namespace

double LoadElement(DataType type, const std::byte* element) {
  if (IsSmallFloat(type)) return LoadSmall(type, element);
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
    case DataType::kFloat32:
      return Load<float>(element);
    case DataType::kFloat64:
      return Load<double>(element);
    default:
      return 0;
  }
}

void StoreElement(DataType type, std::byte* element, double value) {
  if (IsSmallFloat(type)) return StoreSmall(type, element, value);
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
    case DataType::kFloat32:
      return Store<float>(element, value);
    case DataType::kFloat64:
      return Store<double>(element, value);
    default:
      return;
  }
}

uint64_t SendCount(const CheckedCall& call) {
  return LayoutOfArgument(call.collective, call.count, call.n_ranks).send;
}

uint64_t ReceiveCount(const CheckedCall& call) {
  return LayoutOfArgument(call.collective, call.count, call.n_ranks).receive;
}

bool HasResult(const CheckedCall& call, int rank) {
  const bool at_root =
      call.collective == TestedCollective::kReduce || call.collective == TestedCollective::kGather;
  return !at_root || rank == call.root;
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
  if (!HasResult(call, rank)) return 0;
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
