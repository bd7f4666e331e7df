// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a group: a communicator of their own, made when both have come to their first
// message, while their programs go on.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "zero_workloads/torch_backend/communicator.h"
#include "zero_workloads/torch_backend/pending_work.h"

namespace dynamiccl::torch_backend {

// Calls come from one thread at a time.
class PairChannel {
 public:
  using Issue = std::function<void(const std::shared_ptr<Communicator>& communicator)>;

  // The two ranks meet at `key` of the store as ranks 0 and 1.
  PairChannel(c10::intrusive_ptr<c10d::Store> store, std::string key, int rank);
  // Waits for messages that are on their way. A peer that never came is not waited for.
  ~PairChannel();

  // The communicator where a message can be issued now; null before both have come.
  std::shared_ptr<Communicator> Ready();
  // Issues a message on the channel's own thread, in order; `work` fails when that does.
  void Defer(c10::intrusive_ptr<PendingWork> work, Issue issue);
  void Abort(const std::string& reason);
  void Synchronize();

 private:
  // Shared with what the channel's thread still has to do when the channel itself is gone.
  struct Meeting {
    c10::intrusive_ptr<c10d::Store> store;
    std::string key;
    int rank = 0;
    std::mutex mutex;
    std::shared_ptr<Communicator> communicator;

    std::shared_ptr<Communicator> Meet();
  };
  struct Deferred {
    std::shared_ptr<Meeting> meeting;
    c10::intrusive_ptr<PendingWork> work;
    Issue issue;
  };
  static void Run(void* deferred);

  std::shared_ptr<Meeting> meeting_;
  cudaStream_t queue_ = nullptr;
};

}  // namespace dynamiccl::torch_backend
