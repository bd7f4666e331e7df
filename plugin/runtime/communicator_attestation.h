// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a communicator agree, asked from inside the tuner's init, where waiting is safe.
#pragma once

#include <string>

#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {

enum class Standing {
  kNotAttested,
  kAttested,    // its ranks can exchange what NCCL offers them
  kAlone,       // has one rank
  kVouchedFor,  // by the user, for ranks that cannot meet
};

// `communicator` is null when it cannot be told which one NCCL is initialising; `constants` names the cost
// model's. Blocks until the ranks have agreed or not; while all live at most the attestation's time-out, and
// never without a bound. Says once why not.
Standing AttestCommunicator(ProcessRuntime& runtime, const Communicator* communicator,
                            const std::string& constants);

}  // namespace dynamiccl
