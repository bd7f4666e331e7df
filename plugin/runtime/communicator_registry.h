// SPDX-License-Identifier: Apache-2.0
// The communicators of this process: those that a program holds, by handle, and those that NCCL is
// initialising, which a tuner is told about before the program has a handle.
//
// Owned by the process's runtime, one of a kind: a thread remembers the last handle that it looked for. Any
// thread may call any function; all but the usual case of Find take a lock. Nothing fails but for want of
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plugin/runtime/call_ledger.h"
#include "plugin/runtime/communicator.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

class CommunicatorRegistry {
 public:
  // Called before NCCL starts to initialise it, by the thread that asked for it.
  void Expect(std::shared_ptr<Communicator> communicator);
  // The calling thread is back from the function that asked for a communicator, so that no init that runs on
  // it from here on is that one's. Inside a group NCCL initialises later, and Claim has to tell otherwise.
  void CallReturned();
  // NCCL has initialised it, or failed to: no tuner's init will be about it any more.
  void StopExpecting(const Communicator& communicator);

  // The expected communicator that a tuner's init is about: the calling thread's own, or, when NCCL
  // initialises on threads of its own, the only one of that size. Null when none fits or several do: then it
  // cannot be told.
  std::shared_ptr<Communicator> Claim(int n_ranks, int n_nodes);

  using Communicators = std::vector<std::shared_ptr<Communicator>>;
  // For an init that Claim could not tell: the communicators that it may be about. Nothing when Claim could
  // tell or none fits. Each communicator is named by one answer only, so the list may be empty.
  std::optional<Communicators> SeveralThatFit(int n_ranks);
  // Claims a communicator that Claim could not tell, because a call on it shows which one it is. Null when it
  // is claimed already, is unknown by now, or has another size.
  std::shared_ptr<Communicator> ClaimByCall(const Communicator& called, int n_ranks, int n_nodes);

  // The program has this handle of it from now on.
  void Add(ncclComm_t handle, std::shared_ptr<Communicator> communicator);
  // Whether a handle was ever added: whether this process has used NCCL through this object.
  bool ever_had_one() const { return generation_.load() > 1; }
  // Forgets the handle, and lets no further call in. Null when it is unknown. The memory stays until Free,
  // and a small part of it for the next 256 removals.
  std::shared_ptr<Communicator> Remove(ncclComm_t handle);
  // Frees the memory of `removed` that is there for calls on it, some hundred KiB. This happens as soon as no
  // thread is inside such a call: now, or when a later communicator is freed. Where that cannot be known (the
  // system has no membarrier, or the communicator is not blocking), it happens once 256 others are removed.
  // Nothing but those calls may use this memory any more.
  void Free(const std::shared_ptr<Communicator>& removed);
  // On the path of each call: the communicator of a handle, or null when it is unknown. The pointer outlives
  // the handle by the next 256 removals, which is what lets an abort on another thread run beside a call. Two
  // compares and no lock when the thread asks for the same handle again.
  Communicator* Find(ncclComm_t handle) {
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    const LastFound& last = last_;
    return last.handle == handle && last.generation == generation ? last.communicator
                                                                  : FindNew(handle, generation);
  }
  // Adds what all communicators so far have counted, those that are gone included.
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
