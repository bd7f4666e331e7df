// SPDX-License-Identifier: Apache-2.0
// Whether a decision could depend on the role, or on the phase, of a call at all: only calls of one
// communicator, collective and size class that occur in several roles or phases are told apart by them.
#pragma once

#include "traces/format/trace.h"

namespace dynamiccl {

struct SharedRoles {
  size_t keys = 0;  // (communicator, collective, size class) with labelled calls
  size_t several_roles = 0;
  size_t several_phases = 0;
  double bytes = 0;  // of all labelled calls
  double bytes_several_roles = 0;
  double bytes_several_phases = 0;

  SharedRoles& operator+=(const SharedRoles& other);
};

// Of the trace's first rank of each communicator; calls without a label, and point-to-point ones, do not
// count.
SharedRoles SharedRolesOf(const Trace& trace);

}  // namespace dynamiccl
