// SPDX-License-Identifier: Apache-2.0
// What others take of a rank's memory, told from outside while the run goes on: by a schedule of steps, or by
// a file that anyone may write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

class TakenMemory {
 public:
  // "0:0,20:24M,40:0": from step 20 on 24 MiB are taken; or "file:PATH", whose first word is a size and is
  // read before every step. Empty: nothing is ever taken. K, M and G are powers of 1024.
  static Result<TakenMemory> Parse(const std::string& text);

  // Bytes. A file that is gone or says nothing understandable keeps what it said last, 0 before.
  int64_t At(int64_t step);

 private:
  struct Change {
    int64_t step, bytes;
  };

  std::string path_;
  std::vector<Change> schedule_;  // by step
  int64_t last_ = 0;
};

// "24M", "1G", "4096": bytes.
Result<int64_t> ParseSize(const std::string& text);

}  // namespace dynamiccl::zero
