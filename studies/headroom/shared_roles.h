// SPDX-License-Identifier: Apache-2.0
// Whether a decision could depend on the role or on the phase of a call at all. Roles only matter for calls
// of one communicator, collective and size class that occur in several roles.
#pragma once

#include "traces/format/trace.h"

namespace dynamiccl {

// Counts over the keys of a trace. Bytes are NCCL's totals.
struct SharedRoles {
  // Number of keys (communicator, collective, size class) with labelled calls.
  size_t keys = 0;
  size_t several_roles = 0;
  size_t several_phases = 0;
  // Bytes of all labelled calls.
  double bytes = 0;
  double bytes_several_roles = 0;
  double bytes_several_phases = 0;

  SharedRoles& operator+=(const SharedRoles& other);
};

// Counts the first rank of each communicator in the trace. Calls without a label, and point-to-point calls,
// do not count.
SharedRoles SharedRolesOf(const Trace& trace);

}  // namespace dynamiccl
