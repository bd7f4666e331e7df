// SPDX-License-Identifier: Apache-2.0
// A rank's end of the control plane for the meeting about a communicator: pledges, and waits for the verdict.
#pragma once

#include "src/decision/control_messages.h"

namespace dynamiccl {

// Blocks the calling thread until the verdict is there. The leader gives it within `leader_ms` of the first
// pledge; so does this wait for reaching the leader, and again, with a second to spare, for its answer. While
// it lasts, a leader that is not there yet, turns this rank away as unknown, or whose connection breaks is
// asked again.
// An error: no answer in that time. The others may have a yes, so the rank must keep to NCCL's choice by
// never pledging for a situation of this communicator: without its mask no entry is used by any rank.
Result<Verdict> PledgeAndWait(const MeetingPoint& meeting, const PledgeMessage& pledge, int leader_ms);

// Sends the pledge and leaves: how a rank that takes no part tells the others at once.
Status PledgeAndLeave(const MeetingPoint& meeting, const PledgeMessage& pledge, int connect_ms);

}  // namespace dynamiccl
