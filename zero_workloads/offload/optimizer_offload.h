// SPDX-License-Identifier: Apache-2.0
// Says where the optimizer's states are stored: on the device, in host memory, or in files.
// The results are bit by bit the same in all three places.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/optimizer/adamw.h"

namespace dynamiccl::zero {

// The value of --offload-optimizer, and its buffer size. Equal on all ranks except for `rank_name`.
struct OptimizerOffload {
  // The states lie on the device (kNone), in host memory (kCpu, see device/host_memory.h) or in files
  // (kNvme).
  enum class Place : uint8_t { kNone, kCpu, kNvme };
  Place place = Place::kNone;
  // An existing folder on this rank's host. Only kNvme uses it.
  std::string folder;
  // With kNvme, the files are FOLDER/RANK_NAME.master.f32, .first_moment.f32 and .second_moment.f32.
  std::string rank_name;
  // Size of a buffer in bytes. A buffer holds one state of one sub-group. FileAdamW needs 9 buffers: three
  // states of three sub-groups.
  int64_t buffer_bytes = 16 << 20;

  // Accepts "none", "cpu" or "nvme:FOLDER". For anything else, the hint of the error lists these forms.
  static Result<OptimizerOffload> Parse(const std::string& text);
  // Returns an error if the folder does not exist or cannot be written.
  Status CheckFolder() const;
};

// Counts the bytes and the time of all transfers between the optimizer and its files since the start.
struct OffloadTraffic {
  // Size of all three files together.
  int64_t file_bytes = 0;
  // True if transfers bypass the page cache.
  bool direct = false;
  int64_t read_bytes = 0, written_bytes = 0;
  // Sums over the threads that read and write.
  int64_t read_nanoseconds = 0, written_nanoseconds = 0;
  // Time for which the optimizer waited for these threads.
  int64_t waited_nanoseconds = 0;
};

// Creates an optimizer with `elements` zeros for each state, stored in the place that `offload` names. Throws
// std::runtime_error if files cannot be created.
std::unique_ptr<AdamW> MakeAdamW(int64_t elements, const OptimizerOffload& offload,
                                 const AdamWSettings& settings, at::Device device);
// Returns the traffic of the optimizer's files; null if its states are not in files. The result lives as long
// as the optimizer.
const OffloadTraffic* TrafficOf(const AdamW& optimizer);

}  // namespace dynamiccl::zero
