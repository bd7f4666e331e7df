// SPDX-License-Identifier: Apache-2.0
// The lines of logs that receipts quote as proof.
#pragma once

#include <cstddef>
#include <string>

#include "tests/real_nccl/init_log.h"

namespace dynamiccl {

// A line of a file that proves something. `text` does not contain the host, process and thread that wrote the
// line.
struct LogLine {
  std::string file;
  size_t number = 0;  // 0: the file as a whole
  std::string text;
};

struct InitialisedChannels {
  real_nccl::LoggedChannels channels;
  LogLine line;
};

}  // namespace dynamiccl
