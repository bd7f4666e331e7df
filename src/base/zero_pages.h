// SPDX-License-Identifier: Apache-2.0
// A large array of which a job may use only a little, such as a table with a place for each possible key.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace dynamiccl {

// Owns an array, movable, whose bytes are zero at first. A page takes memory only from the first write into
// it on, so making the array costs two microseconds whatever its length. The constructor throws
// std::bad_alloc if there is no memory. Threads must synchronise as with any array.
template <typename T>
class ZeroPages {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit ZeroPages(size_t count) : bytes_(count * sizeof(T)) {
    void* const pages = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    values_ = static_cast<T*>(pages);
  }
  // The other array is then empty, or has this one's old pages.
  ZeroPages(ZeroPages&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), values_(std::exchange(other.values_, nullptr)) {}
  ZeroPages& operator=(ZeroPages&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(values_, other.values_);
    return *this;
  }
  ~ZeroPages() {
    if (values_ != nullptr) ::munmap(values_, bytes_);
  }

  T& operator[](size_t i) const { return values_[i]; }
  size_t size() const { return bytes_ / sizeof(T); }

 private:
  size_t bytes_;
  T* values_;
};

}  // namespace dynamiccl
