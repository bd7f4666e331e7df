// SPDX-License-Identifier: Apache-2.0
// Whether a tuner could change how a call is done, and if not, why: the ledger that traces and metrics show.
#pragma once

#include "plugin/runtime/issued_group.h"
#include "plugin/runtime/issuing_thread.h"
#include "plugin/runtime/job_settings.h"
#include "src/collective/coverage.h"

namespace dynamiccl {

// Coverage of a call that the library has taken, from the marks that the tuner left in its group. In modes
// that do not choose nobody is asked, so calls that no variable pins count as tunable. kUnknown where the
// library asks on a thread of its own, or no session of ours belongs to the communicator. Issuing thread.
Coverage CoverageOf(const PendingCall& pending, Mode mode, const IssuedGroup& group);

}  // namespace dynamiccl
