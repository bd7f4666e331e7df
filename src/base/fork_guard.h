// SPDX-License-Identifier: Apache-2.0
// Keeps children of fork() from holding connections to peers.
//
// Peers notice that this process has died because the kernel closes its sockets. A child that was forked
// without exec, such as a worker of PyTorch's DataLoader, has a copy of each socket. If the child lived
// longer, the connection would stay open, and the peers would wait for their time-out.
#pragma once

#include <vector>

namespace dynamiccl {

// While this object lives, a child of fork() gets /dev/null in place of each socket that was added. The
// number of the descriptor stays taken, so the child may destroy the objects that it inherited. The owner of
// the sockets owns this object too, and destroys it before it closes them. One thread uses an object; other
// threads may fork at any time.
class ForkGuard {
 public:
  ForkGuard() = default;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  void Add(int socket);

 private:
  std::vector<int> sockets_;
};

}  // namespace dynamiccl
