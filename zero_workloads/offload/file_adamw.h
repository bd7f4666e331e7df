// SPDX-License-Identifier: Apache-2.0
// AdamW whose states lie in files, as ZeRO-Infinity keeps them on NVMe (Rajbhandari et al., SC 2021). A step
// walks through the states in sub-groups, the last first, over a ring of three buffers. While one buffer is
// filled with the next sub-group, the optimizer works on the second, and the third is written back.
#pragma once

#include <array>
#include <future>
#include <memory>

#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/offload/state_file.h"

namespace dynamiccl::zero {

// Owned by ZeroEngine and called on its training thread; each transfer runs on a thread of its own. A failed
// read or write throws std::runtime_error from Step. The step is then partly done, and the run must end.
class FileAdamW final : public AdamW {
 public:
  // Creates three files in `offload.folder`, filled with zeros, and the ring. Throws std::runtime_error if a
  // file cannot be made.
  FileAdamW(int64_t elements, const OptimizerOffload& offload, const AdamWSettings& settings);
  // Waits for transfers under way and removes the files.
  ~FileAdamW() override;

  void Step(const at::Tensor& gradients, double learning_rate, const at::Tensor& parameters,
            const SubGroups& groups = {}) override;
  const OffloadTraffic& traffic() const { return traffic_; }

 private:
  // Sub-group `number`, counted from the first element: its first element, its elements, and the disk blocks
  // that hold them.
  struct Group {
    int64_t begin, length, blocks;
  };
  // The three files. They are created before the base class AdamW, which works on their mappings.
  struct Files {
    Files(int64_t elements, const OptimizerOffload& offload);
    // Files of master, first_moment and second_moment, in this order.
    std::array<StateFile, 3> of;
  };
  // Memory for the three states of one sub-group, and the transfer that uses it.
  struct Buffer {
    // Room for one sub-group of each state.
    AdamWStates states;
    // The transfer of this buffer that is in progress; at most one of the two futures is valid. Its result is
    // the time that the transfer took, in nanoseconds.
    std::future<int64_t> reading, writing;
  };

  FileAdamW(std::unique_ptr<Files> files, int64_t elements, const OptimizerOffload& offload,
            const AdamWSettings& settings);
  Group GroupAt(int64_t number) const;
  Buffer& BufferOf(int64_t number) { return ring_[static_cast<size_t>(number % 3)]; }
  // Starts reading sub-group `number` into its buffer, once the buffer's last write is done.
  void StartReading(int64_t number);
  void AwaitReading(int64_t number);
  // Starts writing sub-group `number` back.
  void StartWriting(int64_t number);
  void AwaitWriting(Buffer& buffer);
  // Waits for a transfer and returns its result; a failure of the transfer is thrown here.
  int64_t Await(std::future<int64_t>& transfer);

  std::unique_ptr<Files> files_;
  int64_t elements_, group_elements_;
  // The ring's memory: three buffers of three states.
  at::Tensor memory_;
  std::array<Buffer, 3> ring_;
  OffloadTraffic traffic_;
};

}  // namespace dynamiccl::zero
