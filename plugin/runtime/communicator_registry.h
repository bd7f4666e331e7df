// SPDX-License-Identifier: Apache-2.0
// The communicators of this process: those that a program holds, by handle, and those that NCCL is
// initialising, whose tuner is called before the program has a handle.
//
// Owned by the process's runtime. There must be only one, because a thread remembers the last handle that it
// looked up. Any thread may call any function; all except the usual case of Find take a lock. Functions fail
// only if memory is short.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
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
  // Announces a communicator. The making thread calls it before NCCL starts to initialise the communicator.
  void Expect(std::shared_ptr<Communicator> communicator);
  // The calling thread has returned from the function that makes a communicator, so a later init on this
  // thread belongs to another communicator. Inside a group NCCL initialises only at the group's end; Claim
  // then has to find the communicator by size.
  void CallReturned();
  // Notes that NCCL has initialised the communicator or failed to. No tuner's init will claim it any more.
  void StopExpecting(const Communicator& communicator);

  // Returns the expected communicator to which a tuner's init belongs: the one that the calling thread is
  // making. If NCCL initialises on its own threads, returns the only expected one of that size. Null if none
  // fits, or if several do.
  std::shared_ptr<Communicator> Claim(int n_ranks, int n_nodes);

  using Communicators = std::vector<std::shared_ptr<Communicator>>;
  // For an init that Claim could not match: returns the communicators that it may belong to. Nothing if Claim
  // could match it or none fits. Each communicator is returned only once over all calls, so the list may be
  // empty.
  std::optional<Communicators> AmbiguousCandidates(int n_ranks);
  // Claims a communicator that Claim could not match, after a call on it has identified it. Null if it is
  // claimed already, no longer known, or of another size.
  std::shared_ptr<Communicator> ClaimByCall(const Communicator& called, int n_ranks, int n_nodes);

  // Notes that the program now has this handle of the communicator, so that Find returns the communicator.
  void Add(ncclComm_t handle, std::shared_ptr<Communicator> communicator);
  // Returns true if a handle was ever added, that is, if this process has used NCCL through this object.
  bool ever_used() const { return generation_.load() > 1; }
  // Forgets the handle, lets no further call in, and stops expecting the communicator. Returns the
  // communicator, or null if the handle is unknown. Free releases its memory, except for a small part that is
  // kept for the next 256 removals.
  std::shared_ptr<Communicator> Remove(ncclComm_t handle);
  // Frees most memory of `removed`: some hundred KiB that are used only inside of calls on the communicator.
  // The memory is freed as soon as no thread is inside of such a call: now, or when a later communicator is
  // freed. If this cannot be known (the system has no membarrier, or the communicator is non-blocking), the
  // memory is freed after 256 further removals. Nothing else may use it any more.
  void Free(const std::shared_ptr<Communicator>& removed);
  // Runs for each call: returns the communicator of a handle, or null if it is unknown. The pointer stays
  // valid until 256 further handles have been removed after this one, so an abort on another thread may run
  // beside a call. Two comparisons and no lock if the thread asks for the same handle again.
  Communicator* Find(ncclComm_t handle) {
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    const LastFound& last = last_;
    return last.handle == handle && last.generation == generation ? last.communicator
                                                                  : FindNew(handle, generation);
  }
  // Returns the first communicator of this many ranks that this process had, even if it is gone; null if
  // there was none. The pointer is valid as long as one that Find returns.
  Communicator* FirstOfSize(int n_ranks) const;
  // Adds the counts of all communicators so far, including those that are gone.
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
  std::vector<std::shared_ptr<Communicator>> not_freed_;  // those passed to Free that still have their memory
  std::map<int, std::weak_ptr<Communicator>> first_of_size_;
  CallLedger forgotten_;  // counts of communicators that are no longer in removed_
  // Changes whenever a handle may have got another meaning.
  std::atomic<uint64_t> generation_{1};
};

}  // namespace dynamiccl
