// SPDX-License-Identifier: Apache-2.0
// What a profiler inside NCCL saw in one process, as sections of a trace. A process usually drives one GPU:
// one section. Where a communicator shows several of its ranks in the same process, each rank gets a section.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/import/rank_section.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

struct ProfiledCall {
  uint64_t communicator = 0;  // NCCL's id, equal on all ranks
  int32_t rank = 0;           // in the communicator
  ImportedCall call;
  uint64_t group =
      0;  // collectives of one number that follow each other on a communicator were issued as one
};

struct ProfiledCommunicator {
  int32_t n_ranks = 0;  // 0: not told
  int32_t n_nodes = 0;  // 0: not told
};

struct ProfiledProcess {
  std::string writer;
  std::string host;
  int64_t process_id = 0;
  uint64_t lost = 0;
  bool wall_clock = false;  // the times count from 1970
  std::map<uint64_t, ProfiledCommunicator> communicators;
  std::vector<ProfiledCall> calls;
  std::map<std::string, UnfilledField> unfilled;
  std::vector<std::string> notes;

  void Unfilled(const std::string& field, const std::string& instead, uint64_t count = 1) {
    if (count > 0) unfilled.try_emplace(field, UnfilledField{field, 0, instead}).first->second.count += count;
  }
};

// Orders the calls by time of issue. A section's rank is that in its largest communicator.
Imported TraceOfProfiledProcess(ProfiledProcess process);

}  // namespace dynamiccl
