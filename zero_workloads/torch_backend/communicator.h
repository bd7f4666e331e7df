// SPDX-License-Identifier: Apache-2.0
// One NCCL communicator and the hostccl stream to which its calls are issued.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "src/nccl_abi/host_stream.h"

namespace dynamiccl::torch_backend {

// Shared by the backend and by the works in flight; the last user destroys it. Any thread may call the
// methods. NCCL's failures throw c10::DistBackendError.
class Communicator {
 public:
  // A rank's place in a new communicator, and the store keys through which its ranks meet.
  struct Rendezvous {
    // Name for messages, for example "group 3".
    std::string name;
    // Prefix of the keys in the store that the ranks use. Once the communicator exists, the keys may be
    // reused.
    std::string key;
    int rank = 0;
    int size = 1;
    // A rank waits this long for the other ranks to arrive.
    std::chrono::milliseconds timeout{0};
  };
  // Collective over the ranks of the new communicator. Returns when all ranks have joined. After a time-out,
  // the error names the ranks that did not arrive.
  Communicator(c10d::Store& store, const Rendezvous& rendezvous);
  // Creates a communicator of those ranks of `parent` that pass the same `color`, in the parent's order.
  // Collective over all ranks of the parent.
  Communicator(Communicator& parent, int color);
  // Waits for the calls that were issued. If the last user is a function that WhenDone runs, another thread
  // waits, because a stream's thread cannot wait for itself.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws if the communicator was aborted.
  ncclComm_t handle();
  cudaStream_t stream() const { return stream_; }
  // True if everything that was issued is done.
  bool Idle() const { return hostcclStreamQuery(stream_) == ncclSuccess; }

  // Runs `function` on the stream's thread when everything issued so far is done, and destroys it there.
  void WhenDone(std::function<void()> function);

  // Ends the calls in flight, on this rank and on peers that wait for this rank. If Abort is called again,
  // the first reason is kept.
  void Abort(const std::string& reason);
  // The reason why calls fail: the reason given to Abort, or NCCL's own error. Empty as long as no call has
  // failed.
  std::string Failure();
  // NCCL's explanation of why it refused a call.
  std::string Refusal(ncclResult_t result);

  // Takes part in a split of `parent` without joining any of the new communicators.
  static void LeaveOut(Communicator& parent);

 private:
  // Guards handle_, because an abort may take the handle away at any time. NCCL calls use the handle without
  // the lock.
  std::mutex mutex_;
  ncclComm_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::string aborted_because_;
};

}  // namespace dynamiccl::torch_backend
