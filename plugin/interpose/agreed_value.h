// SPDX-License-Identifier: Apache-2.0
// Live values as the program reads and proposes them (src/annotate/agreed_value.h, docs/agree.md). The
// functions never fail: in doubt the program gets its own value, and the reason is logged once.
#pragma once

#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// dynamicclAgreedValue: stores the value that the communicator's next call has, or `fallback` if none was
// agreed, and returns true if it was agreed. Runs on the thread that issues the communicator's calls, or
// ordered with it. At the boundary of a switch it waits for the verdict, as that call would. Null: the
// process's first communicator of all ranks of the job.
bool ReadAgreedValue(ncclComm_t comm, const char* name, int64_t fallback, int64_t* value) noexcept;
// dynamicclProposeValue: any thread. Returns false if values do not change on this communicator, or if the
// name is none.
bool ProposeAgreedValue(ncclComm_t comm, const char* name, int64_t value) noexcept;

}  // namespace dynamiccl
