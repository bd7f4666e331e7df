// SPDX-License-Identifier: Apache-2.0
// The bounds on a communicator's channels that a rule asks for. NCCL takes them only when it initialises the
// communicator, so the ranks agree on them before that.
#pragma once

#include <string>

#include "plugin/runtime/communicator.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/rendezvous_points.h"

namespace dynamiccl {

// Returns the bounds to add to the program's configuration, the same on all ranks or none, and notes them in
// the communicator. `own` are the bounds that the program has set, which stay. `unable` is the reason why
// this rank cannot wait or cannot set bounds; empty: it can. Runs on the making thread, before the library is
// called. Blocks until the ranks have a verdict: while the leader's process lives, at most the attestation's
// time-out. Logs once why nothing is set.
CtaBounds AgreeOnCtas(const LoadedChoices& choices, RendezvousPoints& rendezvous, Communicator& communicator,
                      const CtaBounds& own, const std::string& unable);

// Logs once why rules do not apply to this communicator, if there are rules about communicators.
void WarnThatCtasStay(const LoadedChoices& choices, const Communicator& communicator, const std::string& why);

}  // namespace dynamiccl
