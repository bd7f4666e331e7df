// SPDX-License-Identifier: Apache-2.0
// The table of guarded sockets, and what a child of fork() does with it. See fork_guard.h.
#include "src/base/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>

namespace dynamiccl {
namespace {

// The guarded sockets of this process. The object is never destroyed, because threads may outlive static
// destructors.
class GuardedSockets {
 public:
  static GuardedSockets& Get() {
    static auto* const guarded = new GuardedSockets;
    return *guarded;
  }

  void Add(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
  }
  void Remove(const std::vector<int>& sockets) {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets) sockets_.erase(socket);
  }

 private:
  GuardedSockets() {
    ::pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); }, [] { Get().AfterFork(); });
  }

  // Runs in the child with the lock held. Closing a socket there would free its number for another file,
  // which the owner of the socket could then close.
  void AfterFork() {
    const int nothing = sockets_.empty() ? -1 : ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int socket : sockets_) {
      if (nothing >= 0) ::dup3(nothing, socket, O_CLOEXEC);
    }
    if (nothing >= 0) ::close(nothing);
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::set<int> sockets_;
};

}  // namespace

ForkGuard::~ForkGuard() {
  GuardedSockets::Get().Remove(sockets_);
}

void ForkGuard::Add(int socket) {
  sockets_.push_back(socket);
  GuardedSockets::Get().Add(socket);
}

}  // namespace dynamiccl
