// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a group, over a communicator of their own. The communicator is created in the
// background, when both ranks have reached their first message.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "zero_workloads/torch_backend/communicator.h"
#include "zero_workloads/torch_backend/pending_work.h"

namespace dynamiccl::torch_backend {

// The channel of one pair of ranks. HostBackend owns it and serialises the calls to it. Until the two ranks
// have met, messages wait on the channel's own thread.
class PairChannel {
 public:
  using Issue = std::function<void(const std::shared_ptr<Communicator>& communicator)>;

  // The two ranks meet in the store as ranks 0 and 1. The store must be used by the channel's thread alone: a
  // thread that waits for a key blocks all other users of the same connection.
  PairChannel(c10::intrusive_ptr<c10d::Store> store, Communicator::Rendezvous rendezvous);
  // Waits for messages in progress, but not for a peer that never arrived.
  ~PairChannel();

  // Returns the communicator if a message can be issued at once. Returns null before both ranks have met, or
  // while earlier messages wait.
  std::shared_ptr<Communicator> Ready();
  // Issues a message later, on the channel's own thread and in order. If issuing fails, `work` ends with the
  // error.
  void Defer(c10::intrusive_ptr<PendingWork> work, Issue issue);
  // Aborts the communicator, if it exists, and ends the works of messages that wait. No message is issued
  // afterwards.
  void Abort(const std::string& reason);
  // Waits for the messages that were issued. Returns at once if the two ranks have not met yet.
  void Synchronize();

 private:
  // What the channel shares with its thread, which may still have messages to issue when the channel itself
  // is gone.
  struct Shared {
    c10::intrusive_ptr<c10d::Store> store;
    Communicator::Rendezvous rendezvous;
    std::mutex mutex;
    // The mutex guards the members below.
    std::shared_ptr<Communicator> communicator;
    std::string aborted_because;  // empty before Abort
    std::vector<c10::intrusive_ptr<PendingWork>> waiting;

    // Blocks until the peer has arrived, and returns the pair's communicator. Throws after Abort.
    std::shared_ptr<Communicator> AwaitCommunicator();
    // Throws after Abort. The caller holds the mutex.
    void CheckUsable() const;
  };
  // A message that waits on the channel's thread.
  struct Deferred {
    std::shared_ptr<Shared> shared;
    c10::intrusive_ptr<PendingWork> work;
    Issue issue;
  };
  static void Run(void* deferred);

  std::shared_ptr<Shared> shared_;
  cudaStream_t queue_ = nullptr;
};

}  // namespace dynamiccl::torch_backend
