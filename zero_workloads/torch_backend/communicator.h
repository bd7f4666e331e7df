// SPDX-License-Identifier: Apache-2.0
// One NCCL communicator and the stream that its calls are issued to.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "src/nccl_abi/host_stream.h"

namespace dynamiccl::torch_backend {

// Any thread. NCCL's failures throw c10::DistBackendError.
class Communicator {
 public:
  // Collective over `size` ranks, which meet at `key` of the store; waits for all of them.
  Communicator(c10d::Store& store, const std::string& key, int rank, int size);
  // The ranks of `parent` with one `color`, in its order. Collective over all of the parent.
  Communicator(Communicator& parent, int color);
  // Waits for what was issued. The communicator's last user destroys it; where that is a call of WhenDone,
  // another thread does the waiting.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws when the communicator was aborted.
  ncclComm_t handle();
  cudaStream_t stream() const { return stream_; }
  // Whether all that was issued is done.
  bool Idle() const { return hostcclStreamQuery(stream_) == ncclSuccess; }

  // Runs `function` on the stream's thread when all that was issued is done, and destroys it there.
  void WhenDone(std::function<void()> function);

  // Ends what is in flight, on this rank and for peers that wait for it. The first reason stays.
  void Abort(const std::string& reason);
  // Why calls fail, empty while they do not: the reason of an abort, or NCCL's own error.
  std::string Failure();
  // NCCL's text for a call that was refused.
  std::string Refusal(ncclResult_t result);

  // Takes part in a split of `parent` without a communicator of its own.
  static void LeaveOut(Communicator& parent);

 private:
  std::mutex mutex_;  // held when handle_ is used beside calls: the abort takes it away
  ncclComm_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::string aborted_because_;
};

}  // namespace dynamiccl::torch_backend
