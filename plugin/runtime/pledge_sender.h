// SPDX-License-Identifier: Apache-2.0
// Pledges that nobody waits for yet: one thread of the process sends them and receives the verdicts. It is
// started by the first pledge, makes no CUDA call, and in a job is never stopped.
#pragma once

#include <poll.h>

#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/decision/control_messages.h"
#include "src/decision/pending_verdict.h"

namespace dynamiccl {

class PledgeSender {
 public:
  PledgeSender();
  // Pledges without a verdict are resolved as timed out.
  ~PledgeSender();

  // Takes a lock, and wakes the thread. The verdict comes from the leader; it is "timed out" when the leader
  // cannot be reached, or ends the connection and cannot be reached again, within `connect_ms`.
  std::shared_ptr<PendingVerdict> Send(const MeetingPoint& meeting, PledgeMessage pledge, int connect_ms);

 private:
  struct Sent {
    MeetingPoint meeting;
    PledgeMessage pledge;
    int64_t deadline_ns = 0;  // for reaching the leader
    std::shared_ptr<PendingVerdict> verdict;
    UniqueFd fd;  // invalid: to be sent (again)
    std::vector<std::byte> received;
  };

  void Run();
  void TakeQueued();
  bool WaitForNews();
  void SendThoseThatWait();
  // False when it is over.
  bool Connected(Sent& sent);
  bool Receive(Sent& sent);

  UniqueFd wake_read_;
  UniqueFd wake_write_;
  std::mutex mutex_;  // guards queued_ and stopping_
  std::vector<Sent> queued_;
  bool stopping_ = false;
  std::list<Sent> sent_;  // the thread's own
  std::thread thread_;
};

}  // namespace dynamiccl
