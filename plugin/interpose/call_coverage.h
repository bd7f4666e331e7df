// SPDX-License-Identifier: Apache-2.0
// Determines whether a tuner could change how a call is done, and if not, why. Traces and metrics show the
// result.
#pragma once

#include "plugin/runtime/issued_group.h"
#include "plugin/runtime/issuing_thread.h"
#include "plugin/runtime/job_settings.h"
#include "src/collective/coverage.h"

namespace dynamiccl {

// Returns the coverage of a call that the library has accepted, from the marks that the tuner left in the
// call's group. In modes that do not choose, the tuner is not asked, so calls that no variable pins count as
// tunable. kUnknown if the library asks on its own thread, or if no tuner session of DynamICCL belongs to the
// communicator. Issuing thread.
Coverage CoverageOf(const PendingCall& pending, Mode mode, const IssuedGroup& group);

}  // namespace dynamiccl
