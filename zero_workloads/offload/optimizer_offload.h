// SPDX-License-Identifier: Apache-2.0
// Where the optimizer's states are: on the device, in host memory of a run on GPUs, or in files. The numbers
// are the same to the bit wherever they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/optimizer/adamw.h"

namespace dynamiccl::zero {

struct OptimizerOffload {
  enum class Place : uint8_t { kNone, kCpu, kNvme };
  Place place = Place::kNone;
  std::string folder;               // kNvme
  std::string rank_name;            // kNvme: files are FOLDER/RANK_NAME.master.f32 and so on
  int64_t buffer_bytes = 16 << 20;  // of one state in a sub-group that is on its way

  // "none", "cpu" or "nvme:FOLDER".
  static Result<OptimizerOffload> Parse(const std::string& text);
  // A folder that is not there, or host memory of a run that is on the host already.
  Status CheckFor(at::Device device) const;
};

// What went between the optimizer and the files.
struct OffloadTraffic {
  int64_t file_bytes = 0;  // of all three files
  bool direct = false;     // past the page cache
  int64_t read_bytes = 0, written_bytes = 0;
  int64_t read_nanoseconds = 0, written_nanoseconds = 0;  // of the threads that read and write
  int64_t waited_nanoseconds = 0;                         // of the optimizer, for them
};

// `elements` zeros for each state. Failures throw std::runtime_error.
std::unique_ptr<AdamW> MakeAdamW(int64_t elements, const OptimizerOffload& offload,
                                 const AdamWSettings& settings, at::Device device);
// Null where the states are not in files.
const OffloadTraffic* TrafficOf(const AdamW& optimizer);

}  // namespace dynamiccl::zero
