// SPDX-License-Identifier: Apache-2.0
// operator new of the loaded object alone (exports.map hides it from the program): waits for memory that is
// short. Once ranks have agreed on a table, a rank that threw in the middle of a decision would leave a call
// to NCCL that the others decide. Any thread; the path of a call whose key is known allocates nothing.
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// Waits of the whole process, 1 ms each and 2 s in all: a job that gets no memory for so long ends by itself.
constexpr int kMaxNaps = 2000;
constexpr timespec kNap{0, 1'000'000};

// Null when the process has used up its waits.
void* Awaited(size_t bytes) noexcept {
  static std::atomic<int> naps{0};
  while (naps.fetch_add(1, std::memory_order_relaxed) < kMaxNaps) {
    if (void* const memory = std::malloc(bytes)) return memory;
    ::nanosleep(&kNap, nullptr);
  }
  return nullptr;
}

}  // namespace

// The library's own forms for arrays and without exceptions come here too; freed by its operator delete,
// which is free.
void* operator new(size_t bytes) {
  const size_t asked = bytes == 0 ? 1 : bytes;
  if (void* const memory = std::malloc(asked)) return memory;
  if (void* const memory = Awaited(asked)) return memory;
  throw std::bad_alloc();
}
