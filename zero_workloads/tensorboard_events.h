// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard: a file of tensorflow.Event messages (tensorflow/core/util/event.proto) in TFRecord
// framing (tensorflow/core/lib/io/record_writer.h): length, its checksum, message, its checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "src/base/status.h"

namespace dynamiccl::zero {

// A value and the name of its chart, for example "train/loss".
struct Scalar {
  std::string tag;
  float value = 0.0f;
};

// One events file, owned by Progress. After a failed write good() is false and later writes are lost.
class TensorboardEvents {
 public:
  // Creates the folder if it is missing, and in it a new file with a unique name. `wall_time` is in seconds
  // since 1970.
  static Result<TensorboardEvents> Open(const std::filesystem::path& folder, double wall_time);

  // Writes one event with all scalars of a step and flushes it, so that TensorBoard sees it at once.
  void Write(int64_t step, double wall_time, std::span<const Scalar> scalars);
  // False after a write has failed.
  bool good() const { return file_.good(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TensorboardEvents(std::filesystem::path path)
      : path_(std::move(path)), file_(path_, std::ios::binary) {}
  void WriteRecord(const std::string& message);

  std::filesystem::path path_;
  std::ofstream file_;
};

// CRC-32C (Castagnoli), as in RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

}  // namespace dynamiccl::zero
