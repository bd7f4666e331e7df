// SPDX-License-Identifier: Apache-2.0
// A file that holds fp32 numbers for this process, in place of memory. The file is scratch space without a
// header; no later process reads it. Transfers of whole blocks bypass the page cache (O_DIRECT) where the
// file system allows it.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "src/base/shared_memory.h"
#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

// Bytes. O_DIRECT demands offsets, lengths and memory addresses in multiples of the device's block, which is
// 512 or 4096.
inline constexpr int64_t kDiskBlock = 4096;
// fp32 elements in a block.
inline constexpr int64_t kBlockElements = kDiskBlock / 4;

// One file of one state, owned by FileAdamW. Failures throw std::runtime_error with the path and the system's
// reason.
class StateFile {
 public:
  // Creates the file, filled with zeros, and reserves its space, so that a full disk is noticed here. If
  // another running process uses the file, this is an error. A file that an earlier process left behind is
  // overwritten.
  StateFile(std::string path, int64_t elements);
  // Removes the file.
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // The file as an fp32 tensor of `elements`, through the page cache, for access between steps.
  const at::Tensor& mapped() const { return mapped_; }
  const std::string& path() const { return path_; }
  // Length of the file: 4 bytes per element, rounded up to whole blocks, of which there is at least one.
  int64_t bytes() const { return bytes_; }
  // True if transfers bypass the page cache.
  bool direct() const { return direct_; }

  // Read() fills `memory` from the file, and Write() writes it back: `blocks` whole blocks from element
  // `begin` on, which is a multiple of kBlockElements. `memory` must be aligned to kDiskBlock. Any thread may
  // call both, but a read and a write of one range must not overlap in time.
  void Read(int64_t begin, int64_t blocks, float* memory) const;
  void Write(int64_t begin, int64_t blocks, const float* memory) const;

 private:
  void OpenDirect();
  // Throws if another process has shortened the file.
  void CheckIsWhole() const;
  int fd() const { return direct_ ? direct_fd_.get() : map_.fd(); }

  std::string path_;
  int64_t bytes_;
  UniqueFd direct_fd_;
  SharedMemory map_;
  bool direct_ = false;
  at::Tensor mapped_;
};

}  // namespace dynamiccl::zero
