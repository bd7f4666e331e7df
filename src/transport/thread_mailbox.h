// SPDX-License-Identifier: Apache-2.0
// Small messages between ranks that are threads of one process. They need no sockets; 64 ranks would need
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

// One rank's inbox. Its owner and the peers that write to it hold it by shared_ptr. Any thread may call Put;
// only the owner calls Take.
class ThreadMailbox {
 public:
  using Message = std::vector<std::byte>;

  // Makes a mailbox that threads of this process find under `name` while it lives.
  static std::shared_ptr<ThreadMailbox> Open(const std::string& name);
  // Returns the mailbox with that name; null when its owner is gone.
  static std::shared_ptr<ThreadMailbox> Find(const std::string& name);
  ~ThreadMailbox();

  // Adds a message of rank `from`. It does not wait for the receiver.
  void Put(int from, std::span<const std::byte> message);
  // Waits for the oldest message of rank `from`, whose own mailbox is `sender`. Returns kPeerFailed when
  // there is no message and the sender or the owner has ended, kTimeout at the deadline.
  Result<Message> Take(int from, const ThreadMailbox& sender, Deadline deadline);

  // Marks the owner as ended and wakes everybody who waits for messages from the owner. Any thread may call
  // this.
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
