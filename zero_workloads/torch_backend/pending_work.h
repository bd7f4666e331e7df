// SPDX-License-Identifier: Apache-2.0
// A call that was issued: what torch.distributed returns as Work.
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

// What a call is about, for messages and for the profiler.
struct CallText {
  const char* operation = "";  // torch.distributed's name
  c10d::OpType type = c10d::OpType::UNKNOWN;
  uint64_t sequence = 0;
  std::string group;
  std::string elements;  // what it moves, in words
};

class PendingWork final : public c10d::Work {
 public:
  // `outputs` are its result, `kept` lives until it is done. `after` runs when NCCL is done: copies into the
  // caller's tensors.
  struct Content {
    std::vector<at::Tensor> inputs, outputs, kept;
    std::function<void()> after;
  };
  PendingWork(int rank, CallText text, const std::string& title, Content content,
              std::chrono::milliseconds timeout);
  ~PendingWork() override;

  // More calls under the same work (coalescing), before Launch.
  void Add(Content content);
  // Before the caller gets it: Launch or Fail will follow on another thread.
  void Defer() { deferred_ = true; }
  // Everything was issued to the communicator's stream: from here on the work becomes done by itself.
  void Launch(std::shared_ptr<Communicator> communicator);
  // Done without success. The first ending counts.
  void Fail(std::exception_ptr error) { End(std::move(error)); }

  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  // The deadline has passed: ends the communicator, or the work alone where nothing was issued yet.
  void Expire();
  // "all_reduce number 7 of group default_pg (float32 x 4096) on rank 1"
  std::string Describe() const;

  // With a time: throws when it is over, and the work goes on. Without: the group's time-out bounds it.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  void abort() override;
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return text_.sequence; }
  // Called by the last owner's intrusive_ptr where a DeadlineWatch still knows the work.
  void release_resources() override;

 private:
  void Complete();
  void End(std::exception_ptr error);
  void SettleFuture();
  void Rethrow();
  std::shared_ptr<Communicator> IssuedTo();

  const CallText text_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::steady_clock::time_point deadline_;
  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> kept_;
  std::vector<std::function<void()>> after_;
  bool deferred_ = false;
  hostcclEvent_t done_ = nullptr;  // null where it was done at once, or deferred
  std::atomic<bool> ended_{false};
  // Guarded by mutex_. The communicator is shared with the backend and every other work in flight.
  std::shared_ptr<Communicator> communicator_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool settled_ = false;
};

}  // namespace dynamiccl::torch_backend
