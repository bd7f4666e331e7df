// SPDX-License-Identifier: Apache-2.0
// Named steps of the object that is loaded into jobs at which a test can end or stop the process, and a hook
// through which a test drops or damages control messages.
//
// The shipped object does nothing at these steps and reads no variable for them. Only the object that tests
// link (tests/faults/armed_fail_points.cc) sets the two functions. src/base/fail_point.h has the steps of
// hostccl and of the trainer.
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

// Called at each step, on the thread that reached it.
using ActAtFailPoint = void (*)(JobFailPoint point);
// The real sender: writes all bytes to the socket or fails.
using SendBytes = Status (*)(int fd, std::span<const std::byte> bytes);
// Called in place of `send` for every control message. It may call `send` once, several times or not at all.
using SendMessage = Status (*)(int fd, std::span<const std::byte> bytes, SendBytes send);

// The test's hooks, set before the first NCCL call of the process and then left alone. Null means no action.
inline constinit std::atomic<ActAtFailPoint> g_act_at_fail_point{nullptr};
inline constinit std::atomic<SendMessage> g_send_message{nullptr};

// Marks a step; any thread. It costs one relaxed load, and it is not placed on the path of a single
// collective call.
inline void PassJobFailPoint(JobFailPoint point) {
  if (const ActAtFailPoint act = g_act_at_fail_point.load(std::memory_order_relaxed)) act(point);
}

}  // namespace dynamiccl
