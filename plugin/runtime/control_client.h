// SPDX-License-Identifier: Apache-2.0
// A rank's end of the control plane for the meeting about a communicator: sends its pledge and waits for the
// verdict, on the calling thread. (Pledges that nobody may block for are the PledgeSender's.)
#pragma once

#include "src/decision/control_messages.h"

namespace dynamiccl {

// Blocks until the verdict is there. The leader gives it within `leader_ms` of the first pledge. This waits
// for so long to reach the leader, and again, with a second to spare, for its answer. While it lasts, a
// leader is asked again that is not there yet, turns this rank away as unknown, or whose connection breaks.
//
// An error: no answer in that time. The other ranks may have a yes, so this rank must keep to NCCL's choice
// by never pledging for a situation of this communicator: without its mask no rank uses an entry.
Result<Verdict> PledgeAndWait(const MeetingPoint& meeting, const PledgeMessage& pledge, int leader_ms);

// How long telling a leader that a rank takes no part may take, in milliseconds: it is one attempt, and the
// other ranks wait meanwhile. A time-out tells them as well.
inline constexpr int kDeclineMs = 500;

// Sends the pledge and leaves: how a rank that takes no part tells the others at once. Blocks for
// `connect_ms` at most; an error when the leader was not reached.
Status PledgeAndLeave(const MeetingPoint& meeting, const PledgeMessage& pledge, int connect_ms);

}  // namespace dynamiccl
