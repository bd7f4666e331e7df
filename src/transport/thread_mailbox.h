// SPDX-License-Identifier: Apache-2.0
// Small messages between ranks that are threads of one process: no sockets, of which 64 ranks would need
// 4,032.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// One rank's inbox. Held by its owner and by the peers that write to it: shared_ptr.
class ThreadMailbox {
 public:
  using Message = std::vector<std::byte>;

  // Found by this process's threads under `name` while it lives.
  static std::shared_ptr<ThreadMailbox> Open(const std::string& name);
  // Null when its owner is gone.
  static std::shared_ptr<ThreadMailbox> Find(const std::string& name);
  ~ThreadMailbox();

  void Put(int from, std::span<const std::byte> message);
  // The oldest message of `from`. kPeerFailed when there is none and `sender`, its own mailbox, was left.
  Result<Message> Take(int from, const ThreadMailbox& sender, Deadline deadline);

  // The owner ended or gave up; wakes all that wait for it. Any thread.
  void Leave();
  bool left() const { return left_.load(std::memory_order_acquire); }

 private:
  explicit ThreadMailbox(std::string name) : name_(std::move(name)) {}

  const std::string name_;
  std::atomic<bool> left_{false};
  std::mutex mutex_;
  std::condition_variable arrival_;
  std::map<int, std::deque<Message>> inbox_;
};

}  // namespace dynamiccl
