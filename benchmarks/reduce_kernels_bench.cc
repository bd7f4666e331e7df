// SPDX-License-Identifier: Apache-2.0
// Measures the speed of hostccl's reduction kernels for every instruction set and data type, and from which
// size on stores past the caches are faster. The compared sets and stores take turns, so that a busy machine
// slows all of them equally.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

// Number of inputs of a pass.
constexpr size_t kInputs = 2;
constexpr size_t kCacheLine = 64;

// Inputs and output of one size, each aligned to a cache line.
struct Buffers {
  explicit Buffers(size_t bytes) : bytes(bytes), memory((kInputs + 1) * (bytes + kCacheLine), std::byte{1}) {
    auto* at = memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine);
    for (const std::byte*& input : inputs) {
      input = at;
      at += bytes;
    }
    output = at;
  }

  size_t bytes;
  std::vector<std::byte> memory;
  const std::byte* inputs[kInputs];
  std::byte* output;
};

// Returns GB/s of output. Passes over the buffers repeat until 64 MiB were moved.
double Speed(CombineKernel combine, DataType type, Buffers& buffers, uint64_t streamed) {
  const size_t passes = std::max<size_t>(1, (size_t{64} << 20) / buffers.bytes / (kInputs + 1));
  const int64_t start = MonotonicNanoseconds();
  for (size_t pass = 0; pass < passes; ++pass) {
    combine({.inputs = buffers.inputs,
             .n_inputs = kInputs,
             .outputs = &buffers.output,
             .n_outputs = 1,
             .count = buffers.bytes / ElementBytes(type),
             .streamed = streamed},
            1);
  }
  const auto ns = static_cast<double>(MonotonicNanoseconds() - start);
  return static_cast<double>(passes * buffers.bytes) / ns;
}

void CompareSets(int rounds) {
  Buffers buffers(64 << 10);
  fmt::print("sum of two, 64 KiB, GB/s of output\n{:10}", "");
  for (const KernelSet set : kKernelSets) fmt::print("{:>10}", Name(set));
  fmt::print("\n");
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    std::vector<double> speeds[std::size(kKernelSets)];
    for (int round = 0; round < rounds; ++round) {
      for (const KernelSet set : kKernelSets) {
        if (!Runs(set)) continue;
        speeds[static_cast<size_t>(set)].push_back(
            Speed(KernelsOf(set, type, ReduceOp::kSum).combine, type, buffers, 0));
      }
    }
    fmt::print("{:10}", dynamiccl::Name(type));
    for (const auto& speed : speeds)
      fmt::print("{:>10}", speed.empty() ? "-" : fmt::format("{:.1f}", Median(speed)));
    fmt::print("\n");
  }
}

void CompareStores(int rounds) {
  const CombineKernel combine = FindReduction(DataType::kFloat32, ReduceOp::kSum, 2).combine;
  fmt::print("sum of two, float, GB/s of output\n{:>14}{:>10}{:>10}{:>8}\n", "touched KiB", "cached",
             "streamed", "ratio");
  for (size_t kib = 1 << 10; kib <= (size_t{192} << 10); kib *= 2) {
    Buffers buffers((kib << 10) / (kInputs + 1) / kCacheLine * kCacheLine);
    std::vector<double> cached, streamed;
    for (int round = 0; round < rounds; ++round) {
      cached.push_back(Speed(combine, DataType::kFloat32, buffers, 0));
      streamed.push_back(Speed(combine, DataType::kFloat32, buffers, 1));
    }
    fmt::print("{:>14}{:>10.2f}{:>10.2f}{:>8.2f}\n", kib, Median(cached), Median(streamed),
               Median(streamed) / Median(cached));
  }
  fmt::print("threshold in use: {} KiB\n", StreamThresholdBytes() >> 10);
}

}  // namespace
}  // namespace dynamiccl::hostccl

int main(int argc, char** argv) {
  CLI::App app("Speed of hostccl's reduction kernels: sets, and where stores past the caches pay.");
  int rounds = 11;
  app.add_option("--rounds", rounds, "Measurements of each, of which the median is shown")
      ->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  dynamiccl::hostccl::CompareSets(rounds);
  dynamiccl::hostccl::CompareStores(rounds);
  return 0;
}
