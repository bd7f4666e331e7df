// SPDX-License-Identifier: Apache-2.0
// Blocks all signals on the calling thread during the lifetime of the object. A thread that is started
// meanwhile inherits the mask, so the program's handlers never run on a thread of this library.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace dynamiccl {

class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace dynamiccl
