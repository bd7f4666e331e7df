// SPDX-License-Identifier: Apache-2.0
// The test's end of a fork server: dynamiccl-zero loaded once, with fork_server.cc preloaded.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

// Bytes of a request: one datagram.
constexpr size_t kMostRequestBytes = 64 << 10;

// Starts ranks of dynamiccl-zero by fork(), without loading LibTorch again for each. One for the test
// program, which becomes the parent of the ranks; one thread. Variables that are read while a program is
// loaded have no effect here.
class RankServer {
 public:
  // Starts the server at its first use. It ends with the test program.
  static RankServer& Get();

  // Returns the process of a rank that runs `arguments` with `environment` added to the test's own, writes to
  // the file `output`, and is ended by SIGALRM after so many seconds.
  pid_t Start(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& environment, const std::string& output,
              int timeout_seconds);

 private:
  RankServer();
  UniqueFd socket_;
};

}  // namespace dynamiccl::zero
