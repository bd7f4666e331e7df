// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard: a file of tensorflow.Event messages (tensorflow/core/util/event.proto) in TFRecord
// framing (tensorflow/core/lib/io/record_writer.h: length, its checksum, message, its checksum).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "src/base/status.h"

namespace dynamiccl::zero {

struct Scalar {
  std::string tag;
  float value = 0.0f;
};

class TensorboardEvents {
 public:
  // Makes the folder where it is missing, and a new file in it whose name no other run takes. `wall_time`:
  // seconds since 1970.
  static Result<TensorboardEvents> Open(const std::filesystem::path& folder, double wall_time);

  // One event with all scalars of a step; written through to the file, for who watches it.
  void Write(int64_t step, double wall_time, std::span<const Scalar> scalars);
  // False once something could not be written.
  bool good() const { return file_.good(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TensorboardEvents(std::filesystem::path path)
      : path_(std::move(path)), file_(path_, std::ios::binary) {}
  void WriteRecord(const std::string& message);

  std::filesystem::path path_;
  std::ofstream file_;
};

// CRC-32C (Castagnoli), as RFC 3720 appendix B.4 has it.
uint32_t Crc32c(std::string_view bytes);

}  // namespace dynamiccl::zero
