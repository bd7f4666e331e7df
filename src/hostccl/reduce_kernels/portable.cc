// SPDX-License-Identifier: Apache-2.0
// The reduction kernels as plain loops, one element at a time. They define the results: the vector kernels
// must give the same bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "src/hostccl/reduce_kernels/half_float.h"
#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

// The format of types that need no conversion before computing.
template <typename T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static T Widen(T value) { return value; }
  static T Narrow(T value) { return value; }
};

// The format of fp16, with its conversions to and from fp32.
struct Half {
  using Stored = uint16_t;
  using Wide = float;
#ifdef __FLT16_MAX__
  static float Widen(uint16_t bits) {
    return static_cast<float>(std::bit_cast<_Float16>(bits));
  }
  static uint16_t Narrow(float value) {
    return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  }
#else
  static float Widen(uint16_t bits) {
    return WidenHalf(bits);
  }
  static uint16_t Narrow(float value) {
    return NarrowHalf(value);
  }
#endif
};

// The format of bf16, which is the upper half of an fp32.
struct Bfloat {
  using Stored = uint16_t;
  using Wide = float;
  static float Widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  // Rounds to the nearest bf16, ties to even. A NaN keeps its upper bits and stays a NaN.
  static uint16_t Narrow(float value) {
    const auto raw = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return static_cast<uint16_t>(raw >> 16 | 0x40);
    return static_cast<uint16_t>((raw + 0x7fff + (raw >> 16 & 1)) >> 16);
  }
};

// OCP's 8-bit formats. e4m3 has no infinity and one NaN for each sign. e5m2 is the upper byte of fp16.
template <int kExponentBits>
struct Float8 {
  using Stored = uint8_t;
  using Wide = float;
  static constexpr int kMantissaBits = 7 - kExponentBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint8_t kMaxFinite = kExponentBits == 4 ? 0x7e : 0x7b;
  static constexpr uint8_t kNan = kExponentBits == 4 ? 0x7f : 0x7e;
  static constexpr int kMantissaMask = (1 << kMantissaBits) - 1;

  static float Widen(uint8_t bits) {
    const int magnitude = bits & 0x7f;
    const int exponent = magnitude >> kMantissaBits;
    const int mantissa = magnitude & kMantissaMask;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissaBits)
                                : std::ldexp(static_cast<float>(mantissa | (1 << kMantissaBits)),
                                             exponent - kBias - kMantissaBits);
    if (kExponentBits == 5 && magnitude == 0x7c) value = std::numeric_limits<float>::infinity();
    if (magnitude > 0x7c && magnitude > kMaxFinite) value = std::numeric_limits<float>::quiet_NaN();
    return (bits & 0x80) != 0 ? -value : value;
  }
  // Rounds to the 8-bit format. Numbers that are too large, and infinities, become the largest finite number.
  // Every NaN becomes the positive NaN.
  static uint8_t Narrow(float value) {
    if (std::isnan(value)) return kNan;
    const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
    const float magnitude = std::fabs(value);
    if (magnitude >= Widen(kMaxFinite)) return static_cast<uint8_t>(sign | kMaxFinite);
    const int exponent = std::max(1 - kBias, magnitude == 0 ? 1 - kBias : std::ilogb(magnitude));
    // The magnitude in units of the format's last mantissa place, rounded to nearest even. If it is rounded
    // up to the next power of two, the sum below carries into the exponent, as it should.
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent)));
    return static_cast<uint8_t>(sign | (((exponent + kBias - 1) << kMantissaBits) + units));
  }
};

// Integers are added and multiplied as unsigned numbers, so overflow wraps as on a GPU.
template <typename T>
constexpr auto Wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else {
    return value;
  }
}

struct Sum {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(Wrapping(a) + Wrapping(b));
  }
};
struct Product {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(Wrapping(a) * Wrapping(b));
  }
};
// If one operand is a NaN, the result is the other one (IEEE 754-2019, maximumNumber). Of two zeros it is the
// second.
struct Maximum {
  template <typename T>
  static T Apply(T a, T b) {
    return a > b || b != b ? a : b;
  }
};
struct Minimum {
  template <typename T>
  static T Apply(T a, T b) {
    return a < b || b != b ? a : b;
  }
};

template <typename T>
T Element(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename Format>
typename Format::Wide Input(const Combination& c, size_t input, size_t index) {
  using Stored = typename Format::Stored;
  const auto value = Format::Widen(Element<Stored>(c.inputs[input], index));
  if (c.multipliers == nullptr || c.multipliers[input] == nullptr) return value;
  const auto multiplier = Format::Widen(Element<Stored>(c.multipliers[input]->bytes.data(), 0));
  return Format::Widen(Format::Narrow(Product::Apply(value, multiplier)));
}

// The last step of a pass, with avg's division. Machines differ in which NaN an operation on two NaNs gives,
// so every NaN becomes the positive quiet one.
template <typename T>
T Finish(T value, int divisor) {
  // Integers are divided as 64-bit ones, because a divisor (the number of ranks) of 128 or more does not fit
  // in eight bits.
  using Quotient = std::conditional_t<std::is_floating_point_v<T>, T,
                                      std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  if (divisor != 1) value = static_cast<T>(static_cast<Quotient>(value) / static_cast<Quotient>(divisor));
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
  }
  return value;
}

template <typename Format, typename Op>
void Combine(const Combination& c, int divisor) {
  using Stored = typename Format::Stored;
  for (size_t i = 0; i < c.count; ++i) {
    auto value = Input<Format>(c, 0, i);
    for (size_t k = 1; k < c.n_inputs; ++k) value = Op::Apply(value, Input<Format>(c, k, i));
    const Stored stored = Format::Narrow(Finish(value, divisor));
    for (size_t k = 0; k < c.n_outputs; ++k)
      std::memcpy(c.outputs[k] + i * sizeof(Stored), &stored, sizeof stored);
  }
}

template <typename Format>
void WidenAll(void* wide, const void* narrow, size_t count) {
  using Wide = typename Format::Wide;
  for (size_t i = 0; i < count; ++i) {
    const Wide value =
        Format::Widen(Element<typename Format::Stored>(static_cast<const std::byte*>(narrow), i));
    std::memcpy(static_cast<std::byte*>(wide) + i * sizeof(Wide), &value, sizeof value);
  }
}

template <typename Format>
void NarrowAll(void* narrow, const void* wide, size_t count) {
  using Stored = typename Format::Stored;
  for (size_t i = 0; i < count; ++i) {
    const Stored value =
        Format::Narrow(Element<typename Format::Wide>(static_cast<const std::byte*>(wide), i));
    std::memcpy(static_cast<std::byte*>(narrow) + i * sizeof(Stored), &value, sizeof value);
  }
}

#include "src/hostccl/reduce_kernels/select_kernels.inc"

}  // namespace

TypeKernels PortableKernels(DataType type, ReduceOp op) {
  return Select(type, op);
}

}  // namespace dynamiccl::hostccl
