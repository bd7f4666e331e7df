// SPDX-License-Identifier: Apache-2.0
// Live values as the program reads and proposes them (src/annotate/agreed_value.h, docs/agree.md). The
// functions never fail: in doubt the program gets its own value, and the reason is logged once.
#pragma once

#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Implements dynamicclAgreedValue. Stores the value that applies to the communicator's next call, and returns
// true. If no value was agreed, stores `fallback` and returns false. Call it on the thread that issues the
// communicator's calls, or ordered with that thread. At the boundary of a switch it waits for the verdict, as
// the next call would. A null `comm` means the first communicator of this process that has all ranks of the
// job.
bool ReadAgreedValue(ncclComm_t comm, const char* name, int64_t fallback, int64_t* value) noexcept;
// Implements dynamicclProposeValue; any thread. Returns false if values do not change on this communicator,
// or if `name` is not a valid name.
bool ProposeAgreedValue(ncclComm_t comm, const char* name, int64_t value) noexcept;

}  // namespace dynamiccl
