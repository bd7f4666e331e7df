// SPDX-License-Identifier: Apache-2.0
// An issued call, which torch.distributed returns as Work.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "zero_workloads/torch_backend/communicator.h"

namespace dynamiccl::torch_backend {

// Describes a call, for messages and for the profiler.
struct CallText {
  // The operation's name in torch.distributed.
  const char* operation = "";
  c10d::OpType type = c10d::OpType::UNKNOWN;
  uint64_t sequence = 0;
  std::string group;
  // The elements that the call moves, for example "float32 x 4096".
  std::string elements;
};

// A call in flight. The caller, the stream's thread and possibly a DeadlineWatch share it; any thread may
// wait for it. It ends once, with success or with an exception that wait() throws.
class PendingWork final : public c10d::Work {
 public:
  // `outputs` are the call's result; `inputs` and `kept` stay alive until the call is done. `after` runs when
  // NCCL is done, and copies into the caller's tensors.
  struct Content {
    std::vector<at::Tensor> inputs, outputs, kept;
    std::function<void()> after;
  };
  PendingWork(int rank, CallText text, const std::string& title, Content content,
              std::chrono::milliseconds timeout);
  ~PendingWork() override;

  // Adds another call to the same work (coalescing). Call it only before Launch.
  void Add(Content content);
  // Marks that another thread will call Launch or Fail later. Call it before the caller receives the work.
  void Defer() { deferred_ = true; }
  // Call it when all NCCL calls of the work were issued to the communicator's stream. The work completes by
  // itself afterwards.
  void Launch(std::shared_ptr<Communicator> communicator);
  // Ends the work without success. Only the first ending counts.
  void Fail(std::exception_ptr error) { End(std::move(error)); }

  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  // Call it when the deadline has passed. It aborts the communicator. If no NCCL call was issued yet, it ends
  // only this work.
  void Expire();
  // Describes the call, for example "all_reduce number 7 of group default_pg (float32 x 4096) on rank 1".
  std::string Describe() const;

  // Waits until the call has ended. With a time-out, throws when the time is over while the call goes on.
  // Without a time-out, the group's time-out bounds the wait. If the future was requested, it is complete
  // afterwards, though its callbacks may still run.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  void abort() override;
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return text_.sequence; }
  // Called by the last owner's intrusive_ptr, if a DeadlineWatch still has a weak reference to the work.
  void release_resources() override;

 private:
  // Completes the work. Runs on the stream's thread when NCCL is done, or on the calling thread if NCCL is
  // done at once.
  void Complete();
  void End(std::exception_ptr error);
  // Completes the future on a thread of its own, if the future was requested.
  void SettleFuture();
  // Completes the future and runs its callbacks on the calling thread.
  void CompleteFuture();
  void WaitForFuture();
  // Throws the work's exception, if it ended with one.
  void Rethrow();
  std::shared_ptr<Communicator> IssuedTo();

  const CallText text_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::steady_clock::time_point deadline_;
  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> kept_;
  std::vector<std::function<void()>> after_;
  bool deferred_ = false;
  // Null if the work was done at once, or deferred.
  hostcclEvent_t done_ = nullptr;
  std::atomic<bool> ended_{false};
  // communicator_, future_ and settled_ are guarded by mutex_. The communicator is shared with the backend
  // and all other works in flight.
  std::shared_ptr<Communicator> communicator_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool settled_ = false;
};

}  // namespace dynamiccl::torch_backend
