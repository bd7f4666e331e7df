// SPDX-License-Identifier: Apache-2.0
// What a thread issues: calls and groups are counted, numbered and recorded around the library's own
// functions. A lone call is a group of one.
//
// The call number of a communicator is the number of outermost group ends with collective work on it, in
// program order. Collective work is what all ranks issue: the five tunable collectives, and AlltoAll, Gather
// and Scatter, which NCCL carries by sends and receives. A program's own sends and receives do not count.
// Groups are recorded when the library has taken them; what the library refuses is not counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/interpose/reentry_scope.h"
#include "plugin/runtime/issuing_thread.h"
#include "src/collective/collective.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

class ProcessRuntime;

// Whether all ranks of the communicator must make the same call: those calls count.
enum class IssuedBy : uint8_t { kEveryRank, kSomeRanks };

// The arguments of a function that moves data. A Gather is what it is carried by, a send to the root (and the
// root's receives); a Scatter likewise.
struct ApiFacts {
  Collective collective = Collective::kAllReduce;
  size_t count = 0;
  ncclDataType_t data_type = ncclInt8;
  int op = 0;
  int root_or_peer = -1;
  IssuedBy issued_by = IssuedBy::kEveryRank;
};

// One function that moves data, from its entry to its return. It lives on the stack of the interposed
// function and runs on the thread that the program calls from. It fails never: where it cannot note the call,
// it passes the call through. A call from inside the library (see ReentryScope), on an unknown communicator
// or while nothing is watched costs a few loads.
class ApiCall {
 public:
  // `configured`: the program chose for this call itself (ChoosesItself in program_config.h).
  ApiCall(const ApiFacts& facts, ncclComm_t comm, cudaStream_t stream, bool configured) noexcept;
  // Records the call or takes it back, as the library's result says, and passes the result through.
  ncclResult_t Finish(ncclResult_t result) noexcept;

 private:
  void Note(const ApiFacts& facts, Communicator& communicator, ncclComm_t comm, cudaStream_t stream,
            bool configured);

  ReentryScope scope_;
  ProcessRuntime* runtime_;  // null: only pass through
  IssuingThread* thread_ = nullptr;
  size_t buffered_ = 0;  // pending calls that stand for this one
};

// ncclGroupStart, after the library's.
ncclResult_t GroupStarted(const ReentryScope& scope, ncclResult_t result) noexcept;

// ncclGroupEnd around the library's. At the outermost end the group's calls get their numbers before the
// library is called, since it asks its tuner then, and are recorded afterwards. Lives on the stack of the
// interposed function; fails never.
class GroupEnd {
 public:
  // `simulated`: ncclGroupSimulateEnd, which closes the group and launches nothing.
  explicit GroupEnd(bool simulated = false) noexcept;
  ncclResult_t Finish(ncclResult_t result) noexcept;
  ncclResult_t FinishSimulated(ncclResult_t result) noexcept;

 private:
  bool outermost() const { return scope_.outermost() && thread_.depth == 1; }

  ReentryScope scope_;
  IssuingThread& thread_;
  ProcessRuntime* runtime_;  // null: only pass through
};

}  // namespace dynamiccl
