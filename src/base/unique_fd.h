// SPDX-License-Identifier: Apache-2.0
// Owner of one file descriptor.
#pragma once

#include <utility>

namespace dynamiccl {

// Closes its descriptor when it is destroyed or assigned to. -1 means empty. Movable, not copyable; one
// thread at a time.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Hands the descriptor to the caller, who must close it.
  int Release() { return std::exchange(fd_, -1); }
  // Closes the descriptor, if there is one. Errors of close(2) are ignored.
  void Reset();

 private:
  int fd_ = -1;
};

}  // namespace dynamiccl
