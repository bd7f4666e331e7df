// SPDX-License-Identifier: Apache-2.0
// Bounds on a communicator's channels that a rule asks for. NCCL takes them only when it initialises the
// communicator, so that ranks agree on them before that.
#pragma once

#include <string>

#include "plugin/runtime/communicator.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/meeting_places.h"

namespace dynamiccl {

// Returns what is to be added to the program's configuration, the same on all ranks or nothing, and writes it
// into the communicator. `own` are the bounds that the program has set, which stay. `unable` says why this
// rank cannot wait or cannot set any; empty: it can. On the making thread, before the library is called.
// Blocks until the ranks have agreed or not: while the leader's process is there, at most the attestation's
// time-out. Logs once why nothing is set.
CtaBounds AgreeOnCtas(const LoadedChoices& choices, MeetingPlaces& meetings, Communicator& communicator,
                      const CtaBounds& own, const std::string& unable);

// Logs once why no rule is about this communicator, if there are rules about communicators.
void WarnThatCtasStay(const LoadedChoices& choices, const Communicator& communicator, const std::string& why);

}  // namespace dynamiccl
