// SPDX-License-Identifier: Apache-2.0
// Reads what NCCL chose from the TUNING lines of its debug log (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING).
// Releases before 2.24 print neither function nor channels. They print algorithm and protocol as numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl::real_nccl {

struct TuningLine {
  std::string function;  // "AllReduce"; empty before 2.24
  // The bytes of one rank's count: for AllGather and ReduceScatter this is the total divided by the ranks.
  // Before 2.24 it is the total.
  size_t bytes = 0;
  std::string algorithm;  // "TREE", as NCCL prints it
  std::string protocol;   // "LL128"
  int first_channel = 0;
  int last_channel = -1;  // -1 before 2.24, where no channels are known

  int channels() const { return last_channel - first_channel + 1; }
  bool operator==(const TuningLine&) const = default;
};

std::ostream& operator<<(std::ostream& out, const TuningLine& line);

// Returns nothing for a line that reports no choice.
std::optional<TuningLine> ParseTuningLine(std::string_view line);

// Returns all choices of a log, in order. Only rank 0 of a communicator prints them.
std::vector<TuningLine> ParseTuningLog(std::string_view log);

}  // namespace dynamiccl::real_nccl
