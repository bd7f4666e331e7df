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

// The longest request in bytes; a request is one datagram.
constexpr size_t kMaxRequestBytes = 64 << 10;

// Starts ranks of dynamiccl-zero by fork(), so that LibTorch is loaded once for a test program. The program
// has one server for each library that is preloaded, which one thread uses, and becomes the parent of the
// ranks. A rank inherits the environment
// that the program had at the first use. A variable that is read while a program is loaded has no effect on a
// rank.
class RankServer {
 public:
  // Starts the server at its first use. It ends with the test program. In its ranks `preload` comes before
  // the program's libraries; empty: nothing does. A rank ends without destructors, so what the library does
  // then is its function rank_ends().
  static RankServer& With(const std::string& preload);

  // Starts a rank that runs `arguments` with `environment` added, and returns its process. The rank writes to
  // the file `output`; SIGALRM ends it after so many seconds. Throws std::runtime_error if no rank started.
  pid_t Start(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& environment, const std::string& output,
              int timeout_seconds);

 private:
  explicit RankServer(const std::string& preload);
  UniqueFd socket_;
};

}  // namespace dynamiccl::zero
