// SPDX-License-Identifier: Apache-2.0
// What the processes of a job had issued on each communicator when their traces were read, side by side.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/collective_config.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// One call of one rank.
struct JobCall {
  CollectiveCall call;
  int32_t root_or_peer = -1;
  int64_t issued_ns = 0;        // real time
  uint64_t order = 0;           // among the calls of its process
  bool returned = true;         // false: the thread was still inside the library
  CollectiveConfig decision{};  // of a tuner, where `decided`
  bool decided = false;
};

// What one rank did on one communicator.
struct JobMember {
  size_t process = 0;  // index into JobCalls::processes
  bool ended = false;  // the communicator was destroyed or aborted
  // In order of (call number, index in group), without gaps in what the process still knows.
  std::vector<JobCall> collectives;
  std::vector<JobCall> transfers;  // sends and receives, in order of issue

  uint64_t next = 0;     // the call after the last that was issued
  bool complete = true;  // no record was lost

  // Where it stands can be told.
  bool known() const { return complete || !collectives.empty(); }
  // The first call that is still known.
  uint64_t first() const { return collectives.empty() ? next : collectives.front().call.call_number; }
  // Null where it was not issued, or is not known any more.
  const JobCall* At(uint64_t call_number, uint16_t index) const;
};

// A rank that was inside the making of a communicator.
struct JobBirth {
  size_t process = 0;
  int32_t rank = -1;
  int32_t n_ranks = 0;
  int64_t since_ns = 0;  // real time
};

struct JobCommunicator {
  int32_t n_ranks = 0;
  std::map<int32_t, JobMember> members;  // by rank in the communicator
  std::vector<JobBirth> births;
};

struct JobProcess {
  int32_t rank = -1;  // in the job
  int64_t process_id = 0;
  std::string host;
  bool closed = false;       // ended in order
  int64_t last_seen_ns = 0;  // real time of its last record
  // The call, or birth, that had not returned: of the last thread that went in.
  std::optional<uint64_t> inside;  // id of the communicator
  bool inside_birth = false;
};

struct JobCalls {
  int32_t world = 0;  // processes in the job, 0 unknown
  std::vector<JobProcess> processes;
  std::map<uint64_t, JobCommunicator> communicators;  // by id

  // Takes the section as a further process.
  void Add(const TraceSection& section);
};

}  // namespace dynamiccl
