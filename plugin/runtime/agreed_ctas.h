// SPDX-License-Identifier: Apache-2.0
// Bounds on a communicator's channels that a rule asks for. NCCL takes them only when it initialises the
// communicator, so that ranks agree on them before that.
#pragma once

#include <string>

#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {

// What is to be added to the program's configuration, the same on all ranks or nothing. `own`: bounds that
// the program has set, which stay. `unable`: why this rank cannot wait or cannot set any; empty: it can.
// Blocks until the ranks have agreed or not: while the leader's process is there, at most the attestation's
// time-out. Writes what is set into the communicator. Says once why not.
CtaBounds AgreeOnCtas(ProcessRuntime& runtime, Communicator& communicator, const CtaBounds& own,
                      const std::string& unable);

// Says once why no rule is about this communicator, if there are such rules.
void SayThatCtasStay(ProcessRuntime& runtime, const Communicator& communicator, const std::string& why);

}  // namespace dynamiccl
