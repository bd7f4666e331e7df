// SPDX-License-Identifier: Apache-2.0
// nccl-tests' option -M (report memory) on a machine without a GPU: resident memory instead of device memory.
#pragma once

#include <cstdint>
#include <string>

#include "tools/bench/bench_session.h"

namespace dynamiccl {

// Resident memory of this process in bytes, shared mappings included; 0 if /proc does not give it.
int64_t ResidentBytes();

// Returns nccl-tests' line about memory: bytes that the communicator took (`initialisation`), bytes of the
// user's buffers (`user`), and bytes that collectives added. Each is the maximum over the ranks. All ranks
// must call it.
Result<std::string> MemoryReport(BenchSession& session, int64_t initialisation, uint64_t user, int64_t after);

}  // namespace dynamiccl
