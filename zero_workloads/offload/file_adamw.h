// SPDX-License-Identifier: Apache-2.0
// AdamW whose states are in files. A step goes through them in sub-groups, over a ring of three buffers: one
// is filled with the next sub-group while the optimizer works on the second and the third goes back to the
// files.
#pragma once

#include <array>
#include <future>
#include <memory>

#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/offload/state_file.h"

namespace dynamiccl::zero {

class FileAdamW final : public AdamW {
 public:
  FileAdamW(int64_t elements, const OptimizerOffload& offload, const AdamWSettings& settings);
  ~FileAdamW() override;

  void Step(const at::Tensor& gradients, double learning_rate, const at::Tensor& parameters) override;
  const OffloadTraffic& traffic() const { return traffic_; }

 private:
  // Sub-group `number` of a step.
  struct Group {
    int64_t begin, length, blocks;
  };
  struct Files {
    Files(int64_t elements, const OptimizerOffload& offload);
    std::array<StateFile, 3> of;  // master, first_moment, second_moment
  };
  struct Buffer {
    AdamWStates states;  // room for a sub-group each
    // One is valid at a time: nanoseconds that the transfer took.
    std::future<int64_t> reading, writing;
  };

  FileAdamW(std::unique_ptr<Files> files, int64_t elements, const OptimizerOffload& offload,
            const AdamWSettings& settings);
  Group GroupAt(int64_t number) const;
  Buffer& BufferOf(int64_t number) { return ring_[static_cast<size_t>(number % 3)]; }
  void StartReading(int64_t number);
  void AwaitReading(int64_t number);
  void StartWriting(int64_t number);
  void AwaitWriting(Buffer& buffer);
  // The transfer's result; its failure is thrown here.
  int64_t Await(std::future<int64_t>& transfer);

  std::unique_ptr<Files> files_;
  int64_t elements_, group_elements_;
  at::Tensor memory_;  // of the ring
  std::array<Buffer, 3> ring_;
  OffloadTraffic traffic_;
};

}  // namespace dynamiccl::zero
