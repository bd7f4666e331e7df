// SPDX-License-Identifier: Apache-2.0
// Random collective calls. A seed gives the same call, config and data on all ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "src/collective/legal_configs.h"
#include "src/hostccl/algorithms/algorithm_registry.h"
#include "src/hostccl/launch.h"
#include "src/transport/shared_buffer.h"
#include "tests/src/hostccl/typed_buffer.h"
#include "tests/support/serial_reference.h"

namespace dynamiccl::testing {

struct RandomCall {
  hostccl::CollectiveOperation operation;
  bool multiplies = false;  // PreMulSum: even ranks multiply by 1, odd ranks by 2.
  bool in_place = false;
  size_t misalignment = 0;
  uint64_t data_seed = 0;

  std::string Describe() const;
};

inline std::string RandomCall::Describe() const {
  return fmt::format("{} {} {} count {} root {} {}/{}/{} chunk {} multiplies {} in_place {} misaligned {}",
                     Name(operation.collective), Name(operation.data_type), Name(operation.op),
                     operation.count, operation.root, Name(operation.config.algorithm),
                     Name(operation.config.protocol), operation.config.channels, operation.chunk_bytes,
                     multiplies, in_place, misalignment);
}

class RandomCalls {
 public:
  RandomCalls(uint64_t seed, int n_ranks, int n_nodes = 1) : random_(seed), n_ranks_(n_ranks) {
    for (const hostccl::AlgorithmEntry& entry : hostccl::AllAlgorithms()) {
      // RunsOn allows PAT only with one rank per node, but PAT's lanes run on any layout.
      const bool runs =
          entry.algorithm == Algorithm::kPat || hostccl::RunsOn(entry.algorithm, n_ranks, n_nodes);
      if (runs) algorithms_.push_back(entry);
    }
  }

  void KeepOnly(Algorithm algorithm) {
    std::erase_if(algorithms_, [&](const auto& entry) { return entry.algorithm != algorithm; });
  }

  RandomCall Next() {
    RandomCall call;
    const auto& entry = algorithms_[Below(algorithms_.size())];
    auto& operation = call.operation;
    operation.collective = entry.collective;
    operation.data_type = static_cast<DataType>(Below(kDataTypes));
    operation.op = static_cast<ReduceOp>(Below(kReduceOps));
    operation.root = static_cast<int>(Below(static_cast<size_t>(n_ranks_)));
    operation.config = {entry.algorithm, ProtocolFor(entry), static_cast<uint8_t>(1 + Below(8))};
    operation.chunk_bytes = ChunkBytes();
    operation.count = Count(ElementBytes(operation.data_type));
    const bool reduces =
        operation.collective != Collective::kAllGather && operation.collective != Collective::kBroadcast;
    call.multiplies = reduces && operation.op == ReduceOp::kSum && Below(2) == 0;
    call.in_place = Below(2) == 0;
    call.misalignment = Below(3) == 0 ? Below(9) : 0;
    call.data_seed = random_();
    return call;
  }

 private:
  Protocol ProtocolFor(const hostccl::AlgorithmEntry& entry) {
    const ConfigMask legal = NcclConfigs(entry.collective);
    auto protocol = Protocol::kSimple;
    do {
      protocol = static_cast<Protocol>(Below(kProtocols));
    } while (!legal.test(ConfigIndex(entry.algorithm, protocol)));
    return protocol;
  }
  // Half of the draws are 0, which means the protocol's own size. The rest may be too small, odd or too
  // large.
  size_t ChunkBytes() {
    switch (Below(4)) {
      case 0:
        return 1 + Below(3000);
      case 1:
        return 1 + Below(1 << 19);
      default:
        return 0;
    }
  }
  size_t Below(size_t limit) { return random_() % limit; }
  // Draws a small count, a count around a power of two, or one of up to 300 KiB.
  size_t Count(size_t element_bytes) {
    switch (Below(4)) {
      case 0:
        return 1 + Below(20);
      case 1:
        return std::max<size_t>(1, (size_t{1} << Below(16)) - 1 + Below(3));
      case 2:
        return 1 + Below(5000);
      default:
        return 1 + Below((300 << 10) / element_bytes);
    }
  }

  std::mt19937_64 random_;
  int n_ranks_;
  std::vector<hostccl::AlgorithmEntry> algorithms_;
};

// The memory of a call. It is private, or shared like memory from ncclMemAlloc.
class CallMemory {
 public:
  CallMemory(size_t bytes, bool shared) : shared_(shared ? AllocateSharedBuffer(bytes).value() : nullptr) {
    if (!shared) private_.resize(bytes);
    std::fill_n(data(), bytes, std::byte{0x5a});
  }
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
  ~CallMemory() {
    if (shared_ == nullptr) return;
    EXPECT_TRUE(FreeSharedBuffer(shared_).has_value());
  }
  std::byte* data() { return shared_ != nullptr ? static_cast<std::byte*>(shared_) : private_.data(); }

 private:
  void* shared_;
  std::vector<std::byte> private_;
};

// The buffers of one rank for a call. The object can compare the result with the serial reference.
class CallBuffers {
 public:
  CallBuffers(const RandomCall& call, int rank, int n_ranks, bool shared = false)
      : call_(call),
        rank_(rank),
        n_ranks_(n_ranks),
        send_count_(call.operation.count * Blocks(Collective::kReduceScatter)),
        recv_count_(call.operation.count * Blocks(Collective::kAllGather)),
        memory_((send_count_ + recv_count_) * ElementBytes(call.operation.data_type) + 64, shared) {
    const auto collective = call.operation.collective;
    const size_t bytes = ElementBytes(call.operation.data_type);
    send_ = memory_.data() + call.misalignment;
    recv_ = send_ + send_count_ * bytes;
    if (call.in_place) {
      const size_t r = static_cast<size_t>(rank);
      recv_ = send_;
      if (collective == Collective::kAllGather) send_ = recv_ + r * send_count_ * bytes;
      if (collective == Collective::kReduceScatter) recv_ = send_ + r * recv_count_ * bytes;
    }
    const Values mine = Input(rank);
    for (size_t i = 0; i < mine.size(); ++i)
      StoreElement(call.operation.data_type, send_ + i * bytes, mine[i]);
  }

  hostccl::CollectiveOperation Operation() const {
    hostccl::CollectiveOperation operation = call_.operation;
    operation.send = send_;
    operation.recv = recv_;
    if (call_.multiplies) {
      hostccl::ElementValue value;
      StoreElement(operation.data_type, value.bytes.data(), Multiplier(rank_));
      operation.multiplier = hostccl::PreMultiplier{operation.data_type, value, nullptr};
    }
    return operation;
  }

  // Returns the index of the first wrong element, or -1 if there is none.
  int64_t FirstMismatch() const {
    std::vector<Values> inputs;
    for (int rank = 0; rank < n_ranks_; ++rank) {
      inputs.push_back(Input(rank));
      for (double& value : inputs.back()) value *= call_.multiplies ? Multiplier(rank) : 1;
    }
    const auto& operation = call_.operation;
    Values expected = SerialReference(operation.collective, operation.op, operation.root, inputs, rank_);
    const size_t bytes = ElementBytes(operation.data_type);
    for (size_t i = 0; i < expected.size(); ++i) {
      std::byte rounded[8];
      StoreElement(operation.data_type, rounded, expected[i]);
      if (LoadElement(operation.data_type, rounded) != LoadElement(operation.data_type, recv_ + i * bytes)) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  }
  std::vector<std::byte> Result() const {
    return {recv_, recv_ + recv_count_ * ElementBytes(call_.operation.data_type)};
  }

 private:
  static double Multiplier(int rank) { return 1 + rank % 2; }
  // Elements are 1, 2 or 3, so that every type holds every partial result exactly. Products stay below 2^6,
  // because only the first five ranks have a 2. Averages use multiples of the number of ranks n, or only 0
  // and n for one-byte types with many ranks. fp8 has three significant bits, so only one rank gives a number
  // to a sum and the others give zero.
  Values Input(int rank) const {
    std::mt19937_64 random(call_.data_seed + static_cast<uint64_t>(rank));
    Values values(send_count_);
    for (double& value : values) value = static_cast<double>(1 + random() % 3);
    if (call_.operation.op == ReduceOp::kProd) {
      for (double& value : values) value = value == 3 || rank >= 5 ? 1 : value;
    }
    const DataType type = call_.operation.data_type;
    if (type == DataType::kFloat8e4m3 || type == DataType::kFloat8e5m2) KeepOneRank(rank, values);
    if (call_.operation.op == ReduceOp::kAvg) {
      const bool narrow = ElementBytes(type) == 1 && n_ranks_ > 6;
      for (double& value : values) value = (narrow && value > 1 ? value - 2 : value) * n_ranks_;
    }
    return values;
  }

  void KeepOneRank(int rank, Values& values) const {
    const ReduceOp op = call_.operation.op;
    if (op != ReduceOp::kSum && op != ReduceOp::kAvg) return;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool mine = i % static_cast<size_t>(n_ranks_) == static_cast<size_t>(rank);
      values[i] = !mine ? 0 : op == ReduceOp::kAvg ? 1 : values[i];
    }
  }
  // Returns the number of blocks in a buffer. In `gathering` it has one block per rank, otherwise one block.
  size_t Blocks(Collective gathering) const {
    return call_.operation.collective == gathering ? static_cast<size_t>(n_ranks_) : 1;
  }

  const RandomCall call_;
  int rank_;
  int n_ranks_;
  size_t send_count_;
  size_t recv_count_;
  CallMemory memory_;
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
};

}  // namespace dynamiccl::testing
