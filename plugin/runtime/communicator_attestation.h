// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a communicator agree, asked from inside the tuner's init, where waiting is safe.
#pragma once

#include <string>

#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {

enum class Standing {
  kNotAttested,
  kAttested,    // its ranks can exchange what NCCL offers them
  kByCalls,     // the same, and with each of these exchanges they attest
  kAlone,       // has one rank
  kVouchedFor,  // by the user, for ranks that cannot meet
};

// What the ranks of a communicator attest of it and of themselves.
AttestedValues AttestedOf(const ProcessRuntime& runtime, const Communicator& communicator,
                          const std::string& constants);

// `communicator` is null when it cannot be told which one NCCL is initialising; `constants` names the cost
// model's. Blocks until the ranks have agreed or not; while all live at most the attestation's time-out, and
// never without a bound. Says once why not.
Standing AttestCommunicator(ProcessRuntime& runtime, const Communicator* communicator,
                            const std::string& constants);

// Tells ranks that attest this communicator inside NCCL's init that this rank does not: there it cannot be
// told from others.
void DeclineToAttest(ProcessRuntime& runtime, const Communicator& communicator);

// One of several that NCCL initialised in a group together, found by its first call: nobody waits then, and
// what ranks attest goes with every exchange of masks (mask_meetings.h). What is not known before that
// exchange is not said here.
Standing StandingByCalls(const ProcessRuntime& runtime, const Communicator& communicator);

}  // namespace dynamiccl
