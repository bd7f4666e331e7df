// SPDX-License-Identifier: Apache-2.0
// Receipts quote lines of logs by what is declared here.
#pragma once

#include <cstddef>
#include <string>

#include "tests/real_nccl/init_log.h"

namespace dynamiccl {

// A line of a file, as evidence. `text` is without the host, process and thread that wrote it.
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
