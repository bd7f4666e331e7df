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

// One collective call. `count` is what NCCL's API takes, which is per rank for AllGather and ReduceScatter.
// The buffers belong to the caller.
struct BenchCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // nccl-tests' mulsum: every rank's part times 2, by an operator of ncclRedOpCreatePreMulSum.
  bool doubled = false;
  int root = 0;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

// Options with which a session is opened.
struct SessionOptions {
  // This rank's place in the job.
  RankPlace place;
  // Selects how AllocateBuffer registers memory.
  Registration registration = Registration::kNone;
  // Issue calls on the null stream instead of a new one.
  bool null_stream = false;
  // ncclConfig_t's CTAPolicy; not set: the library's default.
  std::optional<int> cta_policy;
};

// Owns the communicator, the device and the buffers of one rank. One thread uses it. All ranks must call the
// same functions in the same order, because most are collectives. Not copyable or movable: the device refers
// to the library.
class BenchSession {
 public:
  // Meets the other ranks and creates the communicator. An error when not all ranks come within 30 s.
  static Result<std::unique_ptr<BenchSession>> Open(const SessionOptions& options);
  // Opens a session at the place that the launcher's variables state.
  static Result<std::unique_ptr<BenchSession>> Open();
  ~BenchSession();
  BenchSession(const BenchSession&) = delete;
  BenchSession& operator=(const BenchSession&) = delete;

  const RankPlace& place() const { return options_.place; }
  const NcclLibrary& library() const { return library_; }
  Device& device() { return *device_; }

  // A buffer for collectives, registered as the options say. It lives as long as the session.
  Result<std::byte*> AllocateBuffer(size_t bytes);

  // Issues the call on the session's stream and returns without waiting.
  Status Issue(const BenchCall& call);
  Status GroupStart();
  Status GroupEnd();
  // Whether the library reduces this type. Asks by an AllReduce of one element, so all ranks must call it.
  bool Supports(DataType type);
  // Returns when all ranks have called it and nothing is left in the stream.
  Status Barrier();
  // Replace each value by its maximum, minimum or sum over ranks. All ranks must pass equally many values.
  Status MaxOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kMax); }
  Status MinOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kMin); }
  Status SumOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kSum); }
  Result<double> SumOverRanks(double value);

 private:
  BenchSession(NcclLibrary library, const SessionOptions& options)
      : library_(std::move(library)), options_(options) {}
  // Second half of Open: everything that can fail.
  Status Start();
  Status CreateCommunicator(const ncclUniqueId& id);
  // The operator of the call; creates the doubling operator of its type at first use.
  Result<ncclRedOp_t> OperatorOf(const BenchCall& call);
  // The operations that consist of sends and receives (transfer_calls.cc).
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
  // kExchangeValues doubles on the device, through which Reduce exchanges values.
  std::byte* exchange_ = nullptr;
  // The operator of `doubled` calls, created once for each type.
  struct Doubler {
    DataType type;
    ncclRedOp_t op;
  };
  std::vector<Doubler> doublers_;
};

}  // namespace dynamiccl
