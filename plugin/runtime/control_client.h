// SPDX-License-Identifier: Apache-2.0
// A rank's end of the control plane in the vote about a communicator: sends its pledge and waits for the
// verdict, on the calling thread. PledgeSender handles pledges for which nobody may block.
#pragma once

#include "src/decision/control_messages.h"

namespace dynamiccl {

// Blocks until the verdict arrives. The leader gives the verdict within `leader_ms` of the first pledge. This
// function waits `leader_ms` to reach the leader, and then `leader_ms` plus a second for the answer.
// Meanwhile it tries again if the leader is not there yet, if the leader does not know this rank yet, or if
// the connection breaks.
//
// An error means that no answer came in time. The other ranks may have received a yes. So this rank must keep
// NCCL's choice: it must never pledge for a situation of this communicator. Without this rank's pledge no
// rank uses a table entry.
Result<Verdict> PledgeAndWait(const RendezvousPoint& rendezvous, const PledgeMessage& pledge, int leader_ms);

// Milliseconds that a rank may take to tell the leader that it takes no part. It makes one attempt while the
// other ranks wait. If the attempt fails, the leader's time-out has the same effect.
inline constexpr int kDeclineMs = 500;

// Sends the pledge and does not wait for a verdict. A rank that takes no part tells the others this way.
// Blocks for `connect_ms` at most; returns an error if it did not reach the leader.
Status PledgeAndLeave(const RendezvousPoint& rendezvous, const PledgeMessage& pledge, int connect_ms);

}  // namespace dynamiccl
