// SPDX-License-Identifier: Apache-2.0
// What a thread issues: calls and groups are counted, numbered and recorded around the library's own
// functions. Call number = number of outermost group ends with collective work on the communicator, in
// program order; a lone call is a group of one. Collective work is what all ranks issue: the five tunable
// collectives, and AlltoAll, Gather and Scatter, which NCCL carries by sends and receives; sends and receives
// of a program's own do not count. A call outside any group, and a group, are recorded when the library has
// taken them; what the library refuses is not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/interpose/reentry_guard.h"
#include "plugin/runtime/process_runtime.h"
#include "src/collective/collective_call.h"

namespace dynamiccl {

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

// One function that moves data, from its entry to its return.
class ApiCall {
 public:
  // `configured`: the program chose for this call itself (call_configuration.h).
  ApiCall(const ApiFacts& facts, ncclComm_t comm, cudaStream_t stream, bool configured) noexcept;
  // Passes the library's result through.
  ncclResult_t Finish(ncclResult_t result) noexcept;

 private:
  ReentryGuard guard_;
  ProcessRuntime* runtime_;  // null: only pass through
  size_t buffered_ = 0;      // descriptions of this call
};

// ncclGroupStart, after the library's.
ncclResult_t GroupStarted(const ReentryGuard& guard, ncclResult_t result) noexcept;

// ncclGroupEnd around the library's.
class GroupEnd {
 public:
  // `simulated`: ncclGroupSimulateEnd, which closes the group and launches nothing.
  explicit GroupEnd(bool simulated = false) noexcept;
  ncclResult_t Finish(ncclResult_t result) noexcept;
  ncclResult_t FinishSimulated(ncclResult_t result) noexcept;

 private:
  bool outermost() const;

  ReentryGuard guard_;
  ProcessRuntime* runtime_;
};

// The program's labels for the calls that this thread issues next.
struct CallLabels {
  Phase phase = Phase::kUnknown;
  Role role = Role::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
};
CallLabels& LabelsOfThisThread();
// dynamicclMarkPhase: sets the labels of phase and stage, and records the step.
void MarkPhaseOfThisThread(int phase, int zero_stage, long long step) noexcept;
// dynamicclMarkMemory: records it, and the level that follows.
void MarkMemoryOfThisProcess(long long free_bytes, long long total_bytes) noexcept;

// What a tuner's question is about, when the library asks on the thread that issued the call.
struct GroupInFlight {
  Communicator* communicator = nullptr;
  GroupFacts facts;
  uint16_t n_collectives = 0;  // that move data, on this communicator
  uint16_t n_others = 0;       // sends, receives, and calls of no bytes
  bool counts = false;         // has work that all ranks issue
  uint16_t questions = 0;      // that the tuner has been asked so far
  // A bit for each tunable collective: asked about, and with more than one configuration to choose from.
  uint8_t asked = 0;
  uint8_t had_choice = 0;
  std::array<SizeClass, kTunableCollectives> asked_about{};  // where there is a bit
  std::array<uint16_t, kTunableCollectives> collectives{};   // of each kind, on this communicator
  bool timed = false;                                        // ranks that tell times have their windows open
  bool on_suspicion = false;                                 // but for a suspicion they would not
  bool captured = false;                                     // into a CUDA graph
  VersionedTable table;                                      // in adaptive mode
};
// Null when this thread has nothing in flight on a communicator of this token.
GroupInFlight* InFlightOnThisThread(const ControlToken& token) noexcept;

// Of the only communicator that this thread has anything in flight on; null when there are several.
GroupInFlight* OnlyInFlightOnThisThread() noexcept;

// The clock that calls are recorded by.
int64_t ClockOfThisThread() noexcept;

// What a profiler's event on this thread is about: the first timed call of its group that is not taken yet,
// of that rank, collective and bytes at the API. `handle` is null when there is none; what is written there
// comes back when the call is recorded.
struct IssuedEvent {
  void** handle = nullptr;
  uint64_t communicator = 0;
  uint64_t bytes = 0;  // NCCL's total
  uint64_t call_number = 0;
  const std::shared_ptr<TimesReport>* report = nullptr;  // null: nobody is told
};
IssuedEvent EventOfThisThread(int rank, Collective collective, uint64_t api_bytes) noexcept;

}  // namespace dynamiccl
