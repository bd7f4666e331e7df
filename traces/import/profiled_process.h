// SPDX-License-Identifier: Apache-2.0
// The calls that a profiler plugin of NCCL observed in one process, as sections of a trace. A process usually
// drives one GPU and gets one section. If a communicator has several of its ranks in the process, each rank
// gets a section.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/import/rank_section.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// One call.
struct ProfiledCall {
  uint64_t communicator = 0;  // NCCL's id, equal on all ranks
  int32_t rank = 0;           // rank in the communicator
  ImportedCall call;
  // Consecutive collectives with the same number on a communicator were issued as one group. 0: the call was
  // issued alone.
  uint64_t group = 0;
};

// Holds what the file states about a communicator. 0 means that it is missing.
struct ProfiledCommunicator {
  int32_t n_ranks = 0;
  int32_t n_nodes = 0;
};

// Everything that a reader found in a file.
struct ProfiledProcess {
  std::string writer;
  std::string host;
  int64_t process_id = 0;
  uint64_t lost = 0;        // calls that the profiler dropped
  bool wall_clock = false;  // the times count from 1970
  bool order_only = false;  // some times of issue were not measured
  std::map<uint64_t, ProfiledCommunicator> communicators;
  std::vector<ProfiledCall> calls;
  UnfilledFields unfilled;
  std::vector<std::string> notes;

  // Counts a field that the file does not contain. `instead` is the value that is used in its place.
  void Unfilled(std::string_view field, std::string_view instead, uint64_t count = 1) {
    CountUnfilled(unfilled, field, instead, count);
  }
};

// Orders the calls by time of issue and builds the trace. The rank of a section is its rank in its largest
// communicator.
Imported TraceOfProfiledProcess(ProfiledProcess process);

}  // namespace dynamiccl
