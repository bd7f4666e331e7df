// SPDX-License-Identifier: Apache-2.0
// Whether this thread is already inside an interposed function: the library calls some of its own functions
// through the public symbols (ncclBcast calls ncclBroadcast), and such a call must be forwarded without being
// counted again.
#pragma once

namespace dynamiccl {

class ReentryGuard {
 public:
  ReentryGuard() : outermost_(!inside_) { inside_ = true; }
  ~ReentryGuard() {
    if (outermost_) inside_ = false;
  }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;

  bool outermost() const { return outermost_; }

 private:
  static inline thread_local bool inside_ = false;
  const bool outermost_;
};

}  // namespace dynamiccl
