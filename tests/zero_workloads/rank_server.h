// SPDX-License-Identifier: Apache-2.0
// The test's side of a fork server: dynamiccl-zero, loaded once with fork_server.cc preloaded.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

// The largest request in bytes. A request is one datagram.
constexpr size_t kMaxRequestBytes = 64 << 10;

// Starts ranks of dynamiccl-zero by fork(), so that a test program loads LibTorch only once. The test program
// has one server for each preloaded library. One thread uses the servers. The test program becomes the parent
// of the ranks. A rank inherits the environment that the test program had at the first use of the server. A
// variable that is read while a program is loaded has no effect on a rank.
class RankServer {
 public:
  // Starts the server at its first use. It ends with the test program. In its ranks, `preload` is loaded
  // before the program's libraries; if it is empty, nothing is. A rank ends without destructors. If the
  // library must do something then, it defines a function rank_ends().
  static RankServer& With(const std::string& preload);

  // Starts a rank that runs `arguments`, with `environment` added to its variables. Returns its process. The
  // rank writes to the file `output`. SIGALRM ends it after the given number of seconds. Throws
  // std::runtime_error if no rank was started.
  pid_t Start(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& environment, const std::string& output,
              int timeout_seconds);

 private:
  explicit RankServer(const std::string& preload);
  UniqueFd socket_;
};

}  // namespace dynamiccl::zero
