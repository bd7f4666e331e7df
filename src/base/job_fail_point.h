// SPDX-License-Identifier: Apache-2.0
// Places in what is loaded into jobs where a test can end or stop the process, and what a test does to
// control messages. The object that ships acts nowhere and reads no variable for it: only the one that tests
// link (tests/faults/armed_fail_points.cc) sets the two functions. src/base/fail_point.h has those of hostccl
// and of the trainer.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "src/base/status.h"

namespace dynamiccl {

enum class JobFailPoint {
#define X(id, name) id,
#include "src/base/job_fail_points.def"
#undef X
};

using ActAtFailPoint = void (*)(JobFailPoint point);
using SendBytes = Status (*)(int fd, std::span<const std::byte> bytes);
// In place of `send`, which it may call.
using SendMessage = Status (*)(int fd, std::span<const std::byte> bytes, SendBytes send);

// Set before the first call; null: nothing is done.
inline constinit std::atomic<ActAtFailPoint> g_act_at_fail_point{nullptr};
inline constinit std::atomic<SendMessage> g_send_message{nullptr};

// Any thread; off the path of calls.
inline void PassJobFailPoint(JobFailPoint point) {
  if (const ActAtFailPoint act = g_act_at_fail_point.load(std::memory_order_relaxed)) act(point);
}

}  // namespace dynamiccl
