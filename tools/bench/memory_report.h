// SPDX-License-Identifier: Apache-2.0
// nccl-tests' -M on a machine without a GPU: resident memory instead of device memory.
#pragma once

#include <cstdint>
#include <string>

#include "tools/bench/bench_session.h"

namespace dynamiccl {

// Resident memory of this process in bytes, shared mappings included; 0 where /proc does not tell.
int64_t ResidentBytes();

// nccl-tests' line with the maximum over ranks: what the communicator took, the user's buffers, and what
// collectives added. All amounts are bytes. All ranks must call it.
Result<std::string> MemoryReport(BenchSession& session, int64_t initialisation, uint64_t user, int64_t after);

}  // namespace dynamiccl
