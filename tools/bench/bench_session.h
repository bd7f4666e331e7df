// SPDX-License-Identifier: Apache-2.0
// One rank of a benchmark: its communicator, its stream, and the exchanges of numbers between ranks that
// measuring needs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
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
  // True: the operator is nccl-tests' mulsum, a sum of every rank's data times 2 (ncclRedOpCreatePreMulSum).
  bool doubled = false;
  int root = 0;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

// Options with which a session is opened.
struct SessionOptions {
  // The rank's number in the job and the address of rank 0.
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
  // Connects all ranks and creates the communicator. It is an error when not all ranks connect within 30 s.
  static Result<std::unique_ptr<BenchSession>> Open(const SessionOptions& options);
  // Opens a session for the rank that the launcher's environment variables describe.
  static Result<std::unique_ptr<BenchSession>> Open();
  ~BenchSession();
  BenchSession(const BenchSession&) = delete;
  BenchSession& operator=(const BenchSession&) = delete;

  const RankPlace& place() const { return options_.place; }
  const NcclLibrary& library() const { return library_; }
  Device& device() { return *device_; }

  // Returns a buffer for collectives, registered with NCCL as the session's options say. It lives as long as
  // the session.
  Result<std::byte*> AllocateBuffer(size_t bytes);

  // Issues the call on the session's stream and returns without waiting.
  Status Issue(const BenchCall& call);
  Status GroupStart();
  Status GroupEnd();
  // True if the library reduces this type. Issues an AllReduce of one element to find out, so all ranks must
  // call it.
  bool Supports(DataType type);
  // Returns the number of channels that hostccl gives a call by itself; 0 for other libraries, which do not
  // tell it.
  int ChannelsOf(Collective collective, uint64_t bytes, const CollectiveConfig& config) const;
  // Returns when all ranks have called Barrier and the stream is empty.
  Status Barrier();
  // Replace each value by its maximum, minimum or sum over ranks. All ranks must pass equally many values.
  Status MaxOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kMax); }
  Status MinOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kMin); }
  Status SumOverRanks(std::vector<double>& values) { return Reduce(values, ReduceOp::kSum); }
  Result<double> SumOverRanks(double value);

 private:
  BenchSession(NcclLibrary library, const SessionOptions& options)
      : library_(std::move(library)), options_(options) {}
  // The part of Open that can fail, after the object exists.
  Status Start();
  Status CreateCommunicator(const ncclUniqueId& id);
  // Returns the operator of the call. The first call with `doubled` creates the operator for its type.
  Result<ncclRedOp_t> OperatorOf(const BenchCall& call);
  // Issues an operation that consists of sends and receives (transfer_calls.cc).
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
  // The operators of calls with `doubled`, created once for each type.
  struct Doubler {
    DataType type;
    ncclRedOp_t op;
  };
  std::vector<Doubler> doublers_;
};

}  // namespace dynamiccl
