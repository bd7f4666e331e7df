// SPDX-License-Identifier: Apache-2.0
// Replaces operator new inside this shared object only (exports.map hides it from the program). If memory is
// short, it waits before it throws. A rank that throws in the middle of a decision leaves the call to NCCL,
// while the other ranks decide that call by the table on which all have agreed. Any thread; a call with a
// known key allocates nothing.
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// The process waits at most this many times in all: 1 ms each, 2 s together. A job that gets no memory for so
// long is lost anyway.
constexpr int kMaxNaps = 2000;
constexpr timespec kNap{0, 1'000'000};

// Returns null when the process has used up its waits.
void* Awaited(size_t bytes) noexcept {
  static std::atomic<int> naps{0};
  while (naps.fetch_add(1, std::memory_order_relaxed) < kMaxNaps) {
    if (void* const memory = std::malloc(bytes)) return memory;
    ::nanosleep(&kNap, nullptr);
  }
  return nullptr;
}

}  // namespace

// The standard library's operators for arrays and its nothrow operators call this function, too. Memory is
// freed by the standard library's operator delete, which calls free.
void* operator new(size_t bytes) {
  const size_t asked = bytes == 0 ? 1 : bytes;
  if (void* const memory = std::malloc(asked)) return memory;
  if (void* const memory = Awaited(asked)) return memory;
  throw std::bad_alloc();
}
