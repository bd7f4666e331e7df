// SPDX-License-Identifier: Apache-2.0
// The communicators of this process: those that a program holds, by handle, and those that NCCL is
// initialising, which a tuner is told about before the program has a handle.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugin/interpose/expected_size_class.h"
#include "plugin/runtime/call_ledger.h"
#include "plugin/runtime/calls_inside.h"
#include "plugin/runtime/switchable_tables.h"
#include "plugin/runtime/times_report.h"
#include "src/collective/collective.h"
#include "src/collective/communicator_info.h"
#include "src/collective/role.h"
#include "src/decision/control_messages.h"
#include "src/nccl_abi/nccl_api.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {

class ConfigCopy;

// What the tuner has to know of the group that is being issued, in values equal on all ranks.
struct GroupFacts {
  uint64_t call_number = 0;
  std::array<uint32_t, kTunableCollectives> operands{};  // AddOperands of its calls, by collective
  bool simulated = false;                                // ncclGroupSimulateEnd: not a call
  bool configured = false;                               // the program chose for one of its calls itself
};

// How many children a rank has made: with what kind they are they get numbers equal on all ranks that make
// them. Ranks that a shrink leaves out take no part in it, so each list of those is counted by itself.
struct ChildCounts {
  uint64_t splits = 0;
  uint64_t grows = 0;
  std::map<uint32_t, uint64_t> shrinks;  // by the digest of the ranks left out
};

// Written before the program gets its handle, then by the threads that issue its calls. NCCL's contract
// orders those calls, so plain members are enough where a comment says "issuing thread".
struct Communicator {
  CommunicatorInfo info;
  uint32_t number = 0;          // of its Communicator record in the trace
  ControlToken token{};         // equal on all ranks
  MeetingPoint meeting;         // invalid: ranks cannot meet
  int member = 0;               // unique to this rank among those that attest
  int process_rank = 0;         // stands for %r in paths
  bool within_process = false;  // all ranks are threads or devices of this process: nothing to attest
  bool blocking = true;
  // "minCTAs=2 maxCTAs=8 nvlsCTAs=4", those that the program's ncclConfig_t sets: channels are NCCL's then.
  std::string pinned_ctas;
  // "minCTAs=8 maxCTAs=16", those that rules have set in it, as all ranks agreed before NCCL's init.
  std::string set_ctas;
  // Where they are set: the program's own configuration.
  std::shared_ptr<const ConfigCopy> asked_for;
  bool zero_ctas = false;                       // its CTA policy has ZERO: the copy engine may be used
  std::atomic<bool> gone{false};                // destroyed or aborted
  std::atomic<bool> claimed{false};             // a tuner session was begun for it
  bool not_told_apart = false;                  // registry's; SeveralThatFit has named it
  std::unique_ptr<StructureTrigger> structure;  // issuing thread; null without a policy
  std::shared_ptr<const Policy> policy;         // that `structure` computes with
  uint64_t next_call = 0;                       // issuing thread
  // Of a non-blocking communicator: issuing thread, then the thread on which the library works for it; the
  // program may not issue the next call before that has ended.
  GroupFacts in_flight;
  std::shared_ptr<SwitchableTables> tables;  // set before the program has the handle; null: one table
  // In adaptive mode, where the table is guarded; set likewise.
  std::shared_ptr<TimesReport> times;
  std::shared_ptr<CallFeed> feed;    // on the leader's rank alone
  ExpectedSizeClass expected_sizes;  // issuing thread
  ChildCounts children;              // issuing thread
  CallLedger ledger;                 // issuing thread counts
  bool introduced = false;           // issuing thread; false: rank and size are not known yet
  CallsInside calls_inside;
};

// What the calls before the next one say that it is for. Unknown where the order of calls and decisions does
// not hold: the communicator is non-blocking, or nothing recognises.
inline Role RecognisedRole(const Communicator& communicator, Collective collective, uint64_t bytes) {
  if (!communicator.blocking || !communicator.structure) return Role::kUnknown;
  return RoleOfNext(communicator.structure->recognised(), collective, bytes);
}

class CommunicatorRegistry {
 public:
  // Called before NCCL starts to initialise it, by the thread that asked for it.
  void Expect(std::shared_ptr<Communicator> communicator);
  // The calling thread is back from the function that asked for it; inside a group NCCL initialises later.
  void CallReturned();
  void StopExpecting(const Communicator& communicator);
  // The expected communicator that a tuner's init is about: the calling thread's own, or, when NCCL
  // initialises on threads of its own, the only one of that size. Null when none fits or several do: then it
  // cannot be told.
  std::shared_ptr<Communicator> Claim(int n_ranks, int n_nodes);

  using Communicators = std::vector<std::shared_ptr<Communicator>>;
  // Nothing where Claim could tell, or nothing fits. Else those of the several that fit which were not among
  // an earlier answer.
  std::optional<Communicators> SeveralThatFit(int n_ranks);
  // One of which Claim could not tell, found by a call on it; null when it is claimed or has another size.
  std::shared_ptr<Communicator> ClaimByCall(const Communicator& called, int n_ranks, int n_nodes);

  void Add(ncclComm_t handle, std::shared_ptr<Communicator> communicator);
  bool ever_had_one() const { return generation_.load() > 1; }
  std::shared_ptr<Communicator> Remove(ncclComm_t handle);
  // What only calls need of `removed`, some hundred KiB, is given back as soon as no call is inside: now, or
  // with one that comes later; where it cannot be told, when 256 others are removed. The caller has done all
  // else that needs it.
  void Free(const std::shared_ptr<Communicator>& removed);
  // Null when unknown. The pointer outlives the handle by the next 256 removals, which is what lets an
  // abort on another thread run beside a call. One compare when the thread asks for the same handle again.
  Communicator* Find(ncclComm_t handle) {
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    const LastFound& last = last_;
    return last.handle == handle && last.generation == generation ? last.communicator
                                                                  : FindNew(handle, generation);
  }
  // Adds what all communicators so far have counted.
  void AddLedgersTo(CallLedger& sum) const;

 private:
  struct LastFound {
    ncclComm_t handle;
    Communicator* communicator;
    uint64_t generation;  // 0: nothing was found yet
  };
  static constinit inline thread_local LastFound last_{};

  Communicator* FindNew(ncclComm_t handle, uint64_t generation);
  std::shared_ptr<Communicator> FindExpected(int n_ranks) const;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Communicator>> expected_;
  std::unordered_map<ncclComm_t, std::shared_ptr<Communicator>> by_handle_;
  std::deque<std::shared_ptr<Communicator>> removed_;
  std::vector<std::shared_ptr<Communicator>> not_freed_;  // of them, those that Free was told of
  CallLedger forgotten_;                                  // of those that are not even in removed_ any more
  // Changes when a handle may mean something else.
  std::atomic<uint64_t> generation_{1};
};

}  // namespace dynamiccl
