// SPDX-License-Identifier: Apache-2.0
// One rank of a benchmark: its communicator, its stream, and the few exchanges between ranks that measuring
// needs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "tools/bench/device.h"
#include "tools/bench/registered_memory.h"
#include "tools/bench/tested_collective.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl {

// `count` as NCCL's API takes it (per rank for AllGather and ReduceScatter).
struct BenchCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool doubled =
      false;  // nccl-tests' mulsum: every rank's part times 2, by an operator of ncclRedOpCreatePreMulSum
  int root = 0;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

struct SessionOptions {
  RankPlace place;
  Registration registration = Registration::kNone;
  bool null_stream = false;
  std::optional<int> cta_policy;
};

// Not copyable, not movable: the device refers to the library. All ranks call the same functions in the same
// order.
class BenchSession {
 public:
  // Meets the other ranks and creates the communicator.
  static Result<std::unique_ptr<BenchSession>> Open(const SessionOptions& options);
  // With the launcher's variables as the place.
  static Result<std::unique_ptr<BenchSession>> Open();
  ~BenchSession();
  BenchSession(const BenchSession&) = delete;
  BenchSession& operator=(const BenchSession&) = delete;

  const RankPlace& place() const { return options_.place; }
  const NcclLibrary& library() const { return library_; }
  Device& device() { return *device_; }

  // A buffer for collectives, registered as the options say. Lives as long as the session.
  Result<std::byte*> AllocateBuffer(size_t bytes);

  Status Issue(const BenchCall& call);
  Status GroupStart();
  Status GroupEnd();
  // Whether the library reduces this type; asks by a call of one element. All ranks alike.
  bool Supports(DataType type);
  // All ranks are here, and nothing is in the stream.
  Status Barrier();
  // Replaces each value by its maximum, minimum or sum over ranks.
  Status MaxOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kMax); }
  Status MinOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kMin); }
  Status SumOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kSum); }
  Result<double> SumOverRanks(double value);

 private:
  BenchSession(NcclLibrary library, const SessionOptions& options)
      : library_(std::move(library)), options_(options) {}
  Status Start();
  Status CreateCommunicator(const ncclUniqueId& id);
  Result<ncclRedOp_t> OperatorOf(const BenchCall& call);
  Status IssueTransfers(const BenchCall& call);
  Status IssueHypercube(const BenchCall& call);
  Status Send(const std::byte* from, uint64_t count, const BenchCall& call, int peer);
  Status Receive(std::byte* to, uint64_t count, const BenchCall& call, int peer);
  Status Reduce(std::vector<double>& values, ReduceOp op);

  NcclLibrary library_;
  SessionOptions options_;
  std::unique_ptr<Device> device_;
  ncclComm_t communicator_ = nullptr;
  std::optional<RegisteredMemory> registered_;
  std::byte* exchange_ = nullptr;  // kExchangeValues doubles on the device
  // The operator of `doubled` calls, made once a type.
  struct Doubler {
    DataType type;
    ncclRedOp_t op;
  };
  std::vector<Doubler> doublers_;
};

}  // namespace dynamiccl
