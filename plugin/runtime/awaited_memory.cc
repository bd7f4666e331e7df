// SPDX-License-Identifier: Apache-2.0
// operator new for this object alone (exports.map hides it from the program). If memory is short, it waits.
// After the ranks have agreed on a table, a rank that threw in the middle of a decision would leave a call to
// NCCL that the other ranks decide by the table. Any thread; a call with a known key allocates nothing.
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// The most waits of the whole process: 1 ms each, 2 s in all. A job that gets no memory for so long is lost
// anyway.
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

// The library's operators for arrays and its nothrow operators call this one, too. Memory is freed by the
// library's operator delete, which calls free.
void* operator new(size_t bytes) {
  const size_t asked = bytes == 0 ? 1 : bytes;
  if (void* const memory = std::malloc(asked)) return memory;
  if (void* const memory = Awaited(asked)) return memory;
  throw std::bad_alloc();
}
