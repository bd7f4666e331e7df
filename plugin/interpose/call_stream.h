// SPDX-License-Identifier: Apache-2.0
// Counts, numbers and records the calls and groups of a thread, around the library's own functions. A lone
// call is a group of one.
//
// The call number of a communicator counts the outermost groups with collective work on that communicator, in
// program order of their ends. Collective work is what all ranks issue: the five tunable collectives, and
// AlltoAll, Gather and Scatter, which NCCL implements by sends and receives. A program's own sends and
// receives do not count. A group is recorded after the library has accepted it; a refused group is not
// counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/interpose/reentry_scope.h"
#include "plugin/runtime/issuing_thread.h"
#include "src/collective/collective.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

class ProcessRuntime;

// Tells whether all ranks of the communicator must make the same call. Only groups with such calls get a call
// number.
enum class IssuedBy : uint8_t { kEveryRank, kSomeRanks };

// The arguments of a function that moves data. A Gather is represented by the sends and receives that
// implement it: a send to the root, and the root's receives. A Scatter likewise.
struct ApiArguments {
  Collective collective = Collective::kAllReduce;
  size_t count = 0;
  ncclDataType_t data_type = ncclInt8;
  int op = 0;
  int root_or_peer = -1;
  IssuedBy issued_by = IssuedBy::kEveryRank;
};

// One function that moves data, from its entry to its return. It lives on the stack of the interposed
// function, on the program's thread. It never fails: if it cannot note the call, the call passes through. A
// call from inside the library (see ReentryScope), on an unknown communicator, or while nothing is watched
// costs a few loads.
class ApiCall {
 public:
  // `configured`: the program itself chose the call's configuration (ChoosesItself in program_config.h).
  ApiCall(const ApiArguments& facts, ncclComm_t comm, cudaStream_t stream, bool configured) noexcept;
  // Records the call or takes it back, depending on the library's result, and returns that result.
  ncclResult_t Finish(ncclResult_t result) noexcept;

 private:
  void Note(const ApiArguments& facts, Communicator& communicator, ncclComm_t comm, cudaStream_t stream,
            bool configured);

  ReentryScope scope_;
  ProcessRuntime* runtime_;  // null: only pass through
  IssuingThread* thread_ = nullptr;
  size_t buffered_ = 0;  // number of pending calls that represent this call
};

// Enters the table version of the communicator's next call. At the boundary of a switch this may wait for a
// verdict, which depends only on control threads. Runs on the issuing thread of a communicator that has
// tables.
void EnterVersion(Communicator& communicator, uint64_t call_number);

// Runs after the library's ncclGroupStart.
ncclResult_t GroupStarted(const ReentryScope& scope, ncclResult_t result) noexcept;

// Surrounds the library's ncclGroupEnd. At the outermost end it numbers the group's calls before it calls the
// library, because the library then asks its tuner; it records the calls afterwards. Lives on the stack of
// the interposed function; never fails.
class GroupEnd {
 public:
  // `simulated`: for ncclGroupSimulateEnd, which closes the group, makes the communicators that were asked
  // for in it, and launches nothing.
  explicit GroupEnd(bool simulated = false) noexcept;
  ncclResult_t Finish(ncclResult_t result) noexcept;

 private:
  bool outermost() const { return scope_.outermost() && thread_.depth == 1; }

  ReentryScope scope_;
  IssuingThread& thread_;
  ProcessRuntime* runtime_;  // null: only pass through
  const bool simulated_;
};

}  // namespace dynamiccl
