// SPDX-License-Identifier: Apache-2.0
// Compares every set of kernels with the portable set, bit for bit, and fp8 with tables computed from the
// formats.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <random>

#include "src/hostccl/reduce_kernels/kernel_set.h"
#include "tests/src/hostccl/typed_buffer.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::Float8Values;

// Returns numbers for which the sets could differ: any bits, NaNs, infinities, zeros of both signs,
// denormals, and the ends of the range.
uint64_t AdversarialBits(std::mt19937_64& random, size_t element_bytes) {
  const uint64_t any = random();
  const uint64_t sign = random() % 2 << (8 * element_bytes - 1);
  switch (random() % 4) {
    case 0:
      return sign | (any & 7);
    case 1: {
      // All bits are 1 except the sign and a few low bits. The format decides whether this is a NaN, an
      // infinity or the largest number.
      const uint64_t ones = ~uint64_t{0} >> (64 - 8 * element_bytes + 1);
      return sign | (ones << random() % (8 * element_bytes - 1) & ones);
    }
    default:
      return any;
  }
}

std::vector<std::byte> Adversarial(std::mt19937_64& random, DataType type, size_t count) {
  const size_t bytes = ElementBytes(type);
  std::vector<std::byte> data(count * bytes);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = AdversarialBits(random, bytes);
    std::memcpy(&data[i * bytes], &bits, bytes);
  }
  return data;
}

// One random combination. It can run with any kernel set on copies of the same buffers.
struct Drawn {
  DataType type;
  ReduceOp op;
  size_t count = 0;
  size_t n_inputs = 1;
  size_t n_outputs = 1;
  int divisor = 1;
  bool in_place = false;
  uint64_t streamed = 0;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<size_t> shifts;  // Misalignment in bytes: first of the inputs, then of the outputs.
  std::vector<std::optional<ElementValue>> multipliers;

  std::string Describe() const {
    return fmt::format("{} {} count {} inputs {} outputs {} divisor {} in_place {} streamed {:x}",
                       dynamiccl::Name(type), dynamiccl::Name(op), count, n_inputs, n_outputs, divisor,
                       in_place, streamed);
  }
};

Drawn Draw(std::mt19937_64& random, DataType type, ReduceOp op) {
  const auto below = [&](size_t limit) { return random() % limit; };
  Drawn drawn{.type = type, .op = op, .count = below(4) == 0 ? below(3000) : below(150)};
  drawn.n_inputs = 1 + below(below(4) == 0 ? 9 : 4);
  drawn.n_outputs = 1 + below(3);
  drawn.divisor = below(2) == 0 ? 1 : 2 + static_cast<int>(below(7));
  drawn.in_place = below(3) == 0;
  drawn.streamed = below(2) == 0 ? random() & 7 : 0;
  const bool multiplies = below(3) == 0;
  const size_t shift_limit = below(2) == 0 ? 1 : 70;
  for (size_t k = 0; k < drawn.n_inputs; ++k) {
    drawn.inputs.push_back(Adversarial(random, type, drawn.count));
    auto& multiplier = drawn.multipliers.emplace_back();
    if (!multiplies || below(2) == 0) continue;
    const auto value = Adversarial(random, type, 1);
    std::copy(value.begin(), value.end(), multiplier.emplace().bytes.begin());
  }
  for (size_t k = 0; k < drawn.n_inputs + drawn.n_outputs; ++k) drawn.shifts.push_back(below(shift_limit));
  return drawn;
}

// Returns the whole output buffers, including the bytes around the data.
std::vector<std::vector<std::byte>> Outputs(const Drawn& drawn, KernelSet set) {
  const size_t bytes = drawn.count * ElementBytes(drawn.type);
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::byte*> at;
  for (const size_t shift : drawn.shifts) {
    auto& buffer = buffers.emplace_back(bytes + 256, std::byte{0xa5});
    std::byte* const aligned = buffer.data() + (-reinterpret_cast<uintptr_t>(buffer.data()) & 63);
    at.push_back(aligned + shift);
  }
  std::vector<const ElementValue*> multipliers;
  for (size_t k = 0; k < drawn.n_inputs; ++k) {
    std::copy(drawn.inputs[k].begin(), drawn.inputs[k].end(), at[k]);
    multipliers.push_back(drawn.multipliers[k] ? &*drawn.multipliers[k] : nullptr);
  }
  if (drawn.in_place) at[drawn.n_inputs] = at[drawn.n_inputs - 1];
  const std::vector<const std::byte*> inputs(at.begin(),
                                             at.begin() + static_cast<std::ptrdiff_t>(drawn.n_inputs));
  const bool any = std::any_of(multipliers.begin(), multipliers.end(), [](auto* m) { return m != nullptr; });
  KernelsOf(set, drawn.type, drawn.op)
      .combine({.inputs = inputs.data(),
                .n_inputs = drawn.n_inputs,
                .outputs = &at[drawn.n_inputs],
                .n_outputs = drawn.n_outputs,
                .count = drawn.count,
                .multipliers = any ? multipliers.data() : nullptr,
                .streamed = drawn.streamed},
               drawn.divisor);
  // Each result begins at its buffer's aligned start, so that buffers of two runs can be compared.
  std::vector<std::vector<std::byte>> results;
  for (auto& buffer : buffers) {
    const auto start =
        buffer.begin() + static_cast<std::ptrdiff_t>(-reinterpret_cast<uintptr_t>(buffer.data()) & 63);
    results.emplace_back(start, start + static_cast<std::ptrdiff_t>(bytes + 192));
  }
  return results;
}

TEST(ReduceKernels, EverySetEqualsThePortableOneBitForBit) {
  constexpr uint64_t kSeed = 20261121;
  std::mt19937_64 random(kSeed);
  int compared = 0;
  for (int t = 0; t < kDataTypes; ++t) {
    for (int op = 0; op < kReduceOps; ++op) {
      for (int round = 0; round < 60; ++round) {
        const Drawn drawn = Draw(random, static_cast<DataType>(t), static_cast<ReduceOp>(op));
        const auto expected = Outputs(drawn, KernelSet::kPortable);
        for (const KernelSet set : kKernelSets) {
          if (set == KernelSet::kPortable || !Runs(set)) continue;
          ASSERT_TRUE(Outputs(drawn, set) == expected)
              << Name(set) << ": " << drawn.Describe() << ", seed " << kSeed;
          ++compared;
        }
      }
    }
  }
  if (compared == 0) GTEST_SKIP() << "this machine runs the portable kernels alone";
}

constexpr DataType kNarrow[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8e4m3,
                                DataType::kFloat8e5m2};

// The numbers lie around every rounding boundary of the narrow formats.
TEST(ReduceKernels, EverySetRoundsAndWidensAlike) {
  std::vector<float> numbers;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x0fffu, 0x1000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  for (const DataType type : kNarrow) {
    const size_t bytes = ElementBytes(type);
    const auto convert = [&](KernelSet set) {
      const TypeKernels kernels = KernelsOf(set, type, ReduceOp::kSum);
      std::vector<std::byte> narrow(numbers.size() * bytes);
      kernels.narrow(narrow.data(), numbers.data(), numbers.size());
      std::vector<float> wide(numbers.size());
      kernels.widen(wide.data(), narrow.data(), numbers.size());
      narrow.resize(narrow.size() + wide.size() * sizeof(float));
      std::memcpy(&narrow[numbers.size() * bytes], wide.data(), wide.size() * sizeof(float));
      return narrow;
    };
    const auto expected = convert(KernelSet::kPortable);
    // NaNs may differ in their payload here, because a combination replaces any NaN by one value before it
    // narrows.
    const auto same = [&](const std::vector<std::byte>& got) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] != numbers[i]) continue;
        if (std::memcmp(&got[i * bytes], &expected[i * bytes], bytes) != 0) return false;
      }
      return true;
    };
    for (const KernelSet set : kKernelSets) {
      if (!Runs(set)) continue;
      EXPECT_TRUE(same(convert(set))) << Name(set) << " " << dynamiccl::Name(type);
    }
  }
}

TEST(HalfFloat, IsWhatThePortableKernelsGive) {
  const TypeKernels kernels = KernelsOf(KernelSet::kPortable, DataType::kFloat16, ReduceOp::kSum);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    float wide = 0;
    kernels.widen(&wide, reinterpret_cast<const std::byte*>(&half), 1);
    const float got = WidenHalf(half);
    ASSERT_TRUE(std::isnan(wide) ? std::isnan(got)
                                 : std::bit_cast<uint32_t>(wide) == std::bit_cast<uint32_t>(got))
        << bits;
    // Tests the border between two neighbouring halves and the numbers around it.
    for (const int64_t offset : {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff}) {
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(std::bit_cast<uint32_t>(got) + offset));
      uint16_t narrow = 0;
      kernels.narrow(reinterpret_cast<std::byte*>(&narrow), &value, 1);
      ASSERT_EQ(NarrowHalf(value), narrow) << value;
    }
  }
}

// Returns the nearest number of the format. A tie goes to the even last bit, and larger numbers to the
// largest.
uint8_t NearestFloat8(DataType type, float value) {
  const uint8_t largest = type == DataType::kFloat8e4m3 ? 0x7e : 0x7b;
  if (std::isnan(value)) return type == DataType::kFloat8e4m3 ? 0x7f : 0x7e;
  const auto& values = Float8Values(type);
  const double magnitude = std::fabs(static_cast<double>(value));
  uint8_t best = 0;
  for (uint8_t bits = 1; bits <= largest; ++bits) {
    const double now = std::fabs(values[bits] - magnitude);
    const double before = std::fabs(values[best] - magnitude);
    if (now < before || (now == before && bits % 2 == 0)) best = bits;
  }
  if (magnitude > values[largest]) best = largest;
  return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

float Apply(ReduceOp op, float a, float b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return std::isnan(a) ? b : std::isnan(b) || a > b ? a : b;
    case ReduceOp::kMin:
      return std::isnan(a) ? b : std::isnan(b) || a < b ? a : b;
    default:
      return a + b;
  }
}

TEST(ReduceKernels, Float8OfAllPairsIsTheNearest) {
  for (const DataType type : {DataType::kFloat8e4m3, DataType::kFloat8e5m2}) {
    const auto& values = Float8Values(type);
    std::vector<std::byte> left;
    std::vector<std::byte> right;
    for (int pair = 0; pair < 0x10000; ++pair) {
      left.push_back(static_cast<std::byte>(pair >> 8));
      right.push_back(static_cast<std::byte>(pair & 0xff));
    }
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
      std::vector<std::byte> out(left.size());
      FindReduction(type, op, 1).Combine(out.data(), left.data(), right.data(), left.size());
      for (size_t i = 0; i < out.size(); ++i) {
        const auto a = static_cast<float>(values[static_cast<size_t>(left[i])]);
        const auto b = static_cast<float>(values[static_cast<size_t>(right[i])]);
        const uint8_t expected = NearestFloat8(type, Apply(op, a, b));
        // The order of the operands decides which of two zeros max and min return.
        if (a == 0 && b == 0 && op != ReduceOp::kSum && op != ReduceOp::kProd) continue;
        ASSERT_EQ(static_cast<uint8_t>(out[i]), expected)
            << dynamiccl::Name(type) << " " << a << " " << dynamiccl::Name(op) << " " << b;
      }
    }
  }
}

TEST(ReduceKernels, AverageOfFloat8IsRoundedOnce) {
  // The sum 3 + 5 + 6 + 7 = 21 is no e4m3 number. 21 / 4 = 5.25 lies between 5 and 5.5 and rounds to the even
  // 5.
  std::byte values[4];
  for (size_t i = 0; i < 4; ++i)
    dynamiccl::testing::StoreElement(DataType::kFloat8e4m3, &values[i], std::array{3, 5, 6, 7}[i]);
  const std::byte* const inputs[] = {&values[0], &values[1], &values[2], &values[3]};
  std::byte out{};
  std::byte* const output = &out;
  FindReduction(DataType::kFloat8e4m3, ReduceOp::kAvg, 4)
      .CombineN({.inputs = inputs, .n_inputs = 4, .outputs = &output, .n_outputs = 1, .count = 1}, true);
  EXPECT_EQ(dynamiccl::testing::LoadElement(DataType::kFloat8e4m3, &out), 5);
}

TEST(ReduceKernels, ACopyKeepsWhatIsNoNumber) {
  const auto signalling = std::bit_cast<std::array<std::byte, 4>>(0xffa12345u);
  std::vector<std::byte> from;
  for (int i = 0; i < 100; ++i) from.insert(from.end(), signalling.begin(), signalling.end());
  for (const uint64_t streamed : {0, 1}) {
    std::vector<std::byte> to(from.size());
    const std::byte* const input = from.data();
    std::byte* const output = to.data();
    FindReduction(DataType::kFloat32, ReduceOp::kSum, 2)
        .CombineN({.inputs = &input,
                   .n_inputs = 1,
                   .outputs = &output,
                   .n_outputs = 1,
                   .count = 100,
                   .streamed = streamed},
                  true);
    EXPECT_EQ(to, from);
  }
}

TEST(ReduceKernels, AMultiplierIsOfTheDataTypeAndRoundsToIt) {
  const auto multiplied = [](DataType type, double value, double by) {
    ElementValue multiplier;
    dynamiccl::testing::StoreElement(type, multiplier.bytes.data(), by);
    ElementValue data;
    dynamiccl::testing::StoreElement(type, data.bytes.data(), value);
    FindReduction(type, ReduceOp::kSum, 2, multiplier).ScaleOwn(data.bytes.data(), data.bytes.data(), 1);
    return dynamiccl::testing::LoadElement(type, data.bytes.data());
  };
  EXPECT_EQ(multiplied(DataType::kInt64, 1 << 20, -3), -3.0 * (1 << 20));
  EXPECT_EQ(multiplied(DataType::kUint8, 200, 2), 144);
  EXPECT_EQ(multiplied(DataType::kFloat64, 0.1, 3), 0.1 * 3);
  // The exact product 6141 needs 13 significant bits.
  EXPECT_EQ(multiplied(DataType::kFloat16, 2047, 3), 6140);
  EXPECT_EQ(multiplied(DataType::kFloat8e4m3, 448, 2), 448);
}

TEST(ReduceKernels, ASetThatTheMachineLacksIsRefusedByName) {
  ::setenv("HOSTCCL_KERNELS", "avx1024", 1);
  const auto refused = KernelSetFromEnvironment();
  ::setenv("HOSTCCL_KERNELS", "portable", 1);
  const auto given = KernelSetFromEnvironment();
  ::unsetenv("HOSTCCL_KERNELS");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("HOSTCCL_KERNELS='avx1024': this machine runs portable"),
            std::string::npos);
  EXPECT_EQ(given.value(), KernelSet::kPortable);
}

}  // namespace
}  // namespace dynamiccl::hostccl
