// SPDX-License-Identifier: Apache-2.0
// Writes one text line for each decision, equal on all ranks of a communicator, for tests and bug reports
// (DYNAMICCL_DECISION_LOG). Each line costs a system call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/unique_fd.h"
#include "src/collective/role.h"
#include "src/decision/decision_engine.h"

namespace dynamiccl {

// The content of one line of the log.
struct LoggedDecision {
  uint64_t communicator = 0;
  uint64_t call_number = 0;
  DecisionKey question;
  Decision decision;
  uint32_t table_version = 0;
};

// Returns "<communicator> <call number> <collective> <bytes> <role>[/<phase>/<stage>]
// <algorithm>/<protocol>/<channels> <who> v<table version>\n".
std::string FormatDecision(const LoggedDecision& logged);

// Shared by the tuner sessions that write to the same path. Any thread.
class DecisionLog {
 public:
  // Returns the log at `path`, shared by all communicators of this process. The first call with a path
  // empties that file. Null if the file cannot be written, which is logged once.
  static std::shared_ptr<DecisionLog> At(const std::string& path);

  // Writes the line with one system call, so lines of several threads do not interleave.
  void Append(const LoggedDecision& logged) const;

 private:
  explicit DecisionLog(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace dynamiccl
