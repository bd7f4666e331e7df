// SPDX-License-Identifier: Apache-2.0
// fp32 numbers in a file instead of in memory, for as long as this process needs them: scratch space without
// a header, which nobody reads afterwards. Whole blocks go past the page cache (O_DIRECT) where the file
// system allows that.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "src/base/shared_memory.h"
#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

// Bytes; O_DIRECT wants offsets, lengths and memory in multiples of the device's block, which are 512 or
// 4096.
inline constexpr int64_t kDiskBlock = 4096;
inline constexpr int64_t kBlockElements = kDiskBlock / 4;

// Failures throw std::runtime_error with the file and the system's reason.
class StateFile {
 public:
  // Zeros. The space is taken at once: a full disk fails here. A file of another running process is an error,
  // one that a process left behind is overwritten.
  StateFile(std::string path, int64_t elements);
  // The file is removed.
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // The file as a tensor, through the page cache: for who looks at it between steps.
  const at::Tensor& mapped() const { return mapped_; }
  const std::string& path() const { return path_; }
  // Length of the file: 4 bytes an element, rounded up to whole blocks.
  int64_t bytes() const { return bytes_; }
  bool direct() const { return direct_; }

  // From element `begin`, a multiple of kBlockElements, whole blocks. `memory` starts at a block's multiple.
  // Any thread; reads and writes of one range do not overlap in time.
  void Read(int64_t begin, int64_t blocks, float* memory) const;
  void Write(int64_t begin, int64_t blocks, const float* memory) const;

 private:
  void OpenDirect();
  int fd() const { return direct_ ? direct_fd_.get() : map_.fd(); }

  std::string path_;
  int64_t bytes_;
  UniqueFd direct_fd_;
  SharedMemory map_;
  bool direct_ = false;
  at::Tensor mapped_;
};

}  // namespace dynamiccl::zero
