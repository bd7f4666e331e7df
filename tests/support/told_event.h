// SPDX-License-Identifier: Apache-2.0
// An event of a test: one thread announces it, and others wait for it.
#pragma once

#include <atomic>

namespace dynamiccl::test {

class ToldEvent {
 public:
  void Tell() {
    told_ = true;
    told_.notify_all();
  }
  void Await() const { told_.wait(false); }

 private:
  std::atomic<bool> told_{false};
};

// Announces the event when its scope ends, so that an assertion that fails earlier does not leave the other
// threads waiting for ever.
class ToldAtEnd {
 public:
  explicit ToldAtEnd(ToldEvent& event) : event_(event) {}
  ToldAtEnd(const ToldAtEnd&) = delete;
  ToldAtEnd& operator=(const ToldAtEnd&) = delete;
  ~ToldAtEnd() { event_.Tell(); }

 private:
  ToldEvent& event_;
};

}  // namespace dynamiccl::test
