// SPDX-License-Identifier: Apache-2.0
// A rank's end of the control plane: pledges, and waits for the verdict.
#pragma once

#include "src/decision/control_messages.h"

namespace dynamiccl {

// Blocks the calling thread. An error means that this rank has not pledged, so nobody gets a yes. Once it has
// pledged it waits until the leader answers or the connection ends: no time-out of its own may decide.
// `connect_ms` bounds the time until the pledge is sent, with retries while the leader turns it away as
// unknown.
Result<Verdict> PledgeAndWait(const MeetingPoint& meeting, const PledgeMessage& pledge, int connect_ms);

// Sends the pledge and leaves: how a rank that takes no part tells the others at once.
Status PledgeAndLeave(const MeetingPoint& meeting, const PledgeMessage& pledge, int connect_ms);

}  // namespace dynamiccl
