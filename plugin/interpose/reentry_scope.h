// SPDX-License-Identifier: Apache-2.0
// Notes whether this thread is already inside an interposed function. The library calls some of its own
// functions through their public symbols (ncclBcast calls ncclBroadcast). Such a call must be forwarded
// without being counted again.
#pragma once

namespace dynamiccl {

// Lives on the stack of each interposed function, as its first object. Costs one load and one store of the
// thread's own flag, which needs no initialisation check.
class ReentryScope {
 public:
  ReentryScope() : outermost_(!inside_) { inside_ = true; }
  ~ReentryScope() {
    if (outermost_) inside_ = false;
  }
  ReentryScope(const ReentryScope&) = delete;
  ReentryScope& operator=(const ReentryScope&) = delete;

  // True: the program made this call. False: the library made it from inside another interposed function.
  bool outermost() const { return outermost_; }

 private:
  static inline thread_local bool inside_ = false;
  const bool outermost_;
};

}  // namespace dynamiccl
