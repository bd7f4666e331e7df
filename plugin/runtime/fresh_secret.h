// SPDX-License-Identifier: Apache-2.0
// The secret of a new communicator, from the kernel's random numbers.
#pragma once

#include "src/decision/control_messages.h"

namespace dynamiccl {

// False: there are none, and a line in the log says so.
bool FillRandomly(ControlSecret& secret);

}  // namespace dynamiccl
