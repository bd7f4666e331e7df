// SPDX-License-Identifier: Apache-2.0
// The calls that the processes of a job had issued on each communicator when their traces were read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/collective_config.h"
#include "traces/format/record_source.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// One call of one rank.
struct JobCall {
  CollectiveCall call;
  int32_t root_or_peer = -1;
  // Time of issue in nanoseconds of real time.
  int64_t issued_ns = 0;
  // Position among the calls of its process.
  uint64_t order = 0;
  // False: the thread was still inside the library.
  bool returned = true;
  // A tuner's answer; valid where `decided`.
  CollectiveConfig decision{};
  bool decided = false;
};

// The calls of one rank on one communicator.
struct JobMember {
  // Index into JobCalls::processes.
  size_t process = 0;
  // True: the communicator was destroyed or aborted.
  bool ended = false;
  // Ordered by (call number, index in group). Old calls may be missing at the beginning. After that, a number
  // is skipped only for a call that the import of another tool's file left out.
  std::vector<JobCall> collectives;
  // Sends and receives in order of issue.
  std::vector<JobCall> transfers;
  // Numbers of sends and receives that were issued before those in `transfers`, by direction and peer.
  std::map<std::pair<Collective, int32_t>, uint64_t> earlier;
  // True if `transfers` and `earlier` hold all sends and receives of the rank.
  bool has_all_transfers = true;

  // Number of the call after the last one issued.
  uint64_t next = 0;
  // True if the trace lost no record of the process.
  bool complete = true;

  // True if the trace tells how far the rank has come.
  bool known() const { return complete || !collectives.empty(); }
  // The first call that is still known.
  uint64_t first() const { return collectives.empty() ? next : collectives.front().call.call_number; }
  // Null where the call was not issued or is no longer known. The pointer is valid until the member changes.
  const JobCall* At(uint64_t call_number, uint16_t index) const;
};

// A rank that was inside the creation of a communicator.
struct JobInit {
  size_t process = 0;
  int32_t rank = -1;
  int32_t n_ranks = 0;
  // Time of entry in nanoseconds of real time.
  int64_t since_ns = 0;
};

// A communicator as all traces together show it.
struct JobCommunicator {
  int32_t n_ranks = 0;
  // Members by rank in the communicator.
  std::map<int32_t, JobMember> members;
  std::vector<JobInit> inits;
};

// One process, that is one trace section.
struct JobProcess {
  // Rank in the job.
  int32_t rank = -1;
  int64_t process_id = 0;
  std::string host;
  // "NCCL 2.28.9"; empty: the file does not say.
  std::string library;
  // True if the process ended in order.
  bool closed = false;
  // The end of the process as its launcher saw it.
  ProcessEnd end;
  // Time of the process's last record in nanoseconds of real time.
  int64_t last_seen_ns = 0;
  // Id of the communicator on which the process has an unfinished call or creation. If several threads are
  // inside the library, the one that entered last counts.
  std::optional<uint64_t> inside;
  bool inside_init = false;
  // True if NoteWhatStops found the process on this machine.
  bool alive = false;
  // What stops the process, in words that follow "it is": "stopped by a signal ...". Empty: nothing known.
  std::string stopped;
};

// All processes and communicators of a job. Fill it with Add, then pass it to DiagnoseHang.
struct JobCalls {
  // Number of processes in the job; 0: unknown.
  int32_t world = 0;
  std::vector<JobProcess> processes;
  // Communicators by id.
  std::map<uint64_t, JobCommunicator> communicators;

  // Adds the section as a further process. `left_out` counts the sends and receives that ReadTail left out of
  // a section that had lost nothing before; null: records that count as lost are unknown.
  void Add(const TraceSection& section, const TransferCounts* left_out = nullptr);
};

}  // namespace dynamiccl
