// SPDX-License-Identifier: Apache-2.0
// One rank of a benchmark: its communicator, its stream, and the few exchanges between ranks that measuring
// needs.
#pragma once

#include <memory>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "tools/bench/device.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl {

// `count` as NCCL's API takes it (per rank for AllGather and ReduceScatter).
struct BenchCall {
  Collective collective = Collective::kAllReduce;
  uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

// Not copyable, not movable: the device refers to the library. All ranks call the same functions in the same
// order.
class BenchSession {
 public:
  // Reads the launcher's variables, meets the other ranks and creates the communicator.
  static Result<std::unique_ptr<BenchSession>> Open();
  ~BenchSession();
  BenchSession(const BenchSession&) = delete;
  BenchSession& operator=(const BenchSession&) = delete;

  const RankPlace& place() const { return place_; }
  const NcclLibrary& library() const { return library_; }
  Device& device() { return *device_; }

  Status Issue(const BenchCall& call);
  // All ranks are here, and nothing is in the stream.
  Status Barrier();
  // Replaces each value by its maximum over ranks.
  Status MaxOverRanks(std::vector<double>& values);

 private:
  BenchSession(NcclLibrary library, const RankPlace& place) : library_(std::move(library)), place_(place) {}
  Status Start();

  NcclLibrary library_;
  RankPlace place_;
  std::unique_ptr<Device> device_;
  ncclComm_t communicator_ = nullptr;
  std::byte* exchange_ = nullptr;  // kExchangeValues doubles on the device
};

}  // namespace dynamiccl
