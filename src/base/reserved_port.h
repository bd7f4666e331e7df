// SPDX-License-Identifier: Apache-2.0
// A TCP port that a launcher keeps free for the first rank of its job.
//
// Finding a free port, closing it and telling it to a process that listens there later is a race: any other
// process may get the port in between. This socket stays bound for as long as the job runs and never listens.
// Linux then gives the port to nobody who asks for any port (bind to port 0, or connect), while a process
// that names the port and sets SO_REUSEADDR, as every server of a rendezvous does (ours, torch's TCPStore),
// may bind it and listen.
#pragma once

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Owns the bound socket. When the object is destroyed, any process may get the port again. The launcher keeps
// one object for each job.
class ReservedPort {
 public:
  // Reserves a port of 127.0.0.1 that Linux chooses. Returns kUnavailable if no port is left.
  static Result<ReservedPort> Reserve();

  int number() const { return number_; }

 private:
  ReservedPort(UniqueFd fd, int number) : fd_(std::move(fd)), number_(number) {}

  UniqueFd fd_;  // Closed in a program that is started: the reservation ends with its owner.
  int number_;
};

}  // namespace dynamiccl
