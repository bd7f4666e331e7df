// SPDX-License-Identifier: Apache-2.0
// Removes what launchers and terminals add to the lines of a log: colours, time stamps, process numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dynamiccl {

// Returns the length of the line's part up to its last carriage return, such as a progress bar, which a
// terminal overwrites. Returns 0 if there is no carriage return. Also returns 0 if NCCL's text lies only in
// that part: NCCL itself then wrote the carriage return, for example in a variable's value from a file with
// Windows line ends.
size_t OverwrittenBytes(std::string_view line);

// Returns the line without what launchers and terminals have added. The result is a part of `line`, or of
// `changed`, which gets a copy if anything is removed from the middle. First the line's OverwrittenBytes are
// removed. ANSI colours and OpenMPI's "[1,0]<stdout>:" are removed anywhere in the line. At its start, in any
// order, are removed: srun's "0: ", torchrun's "[rank0]:" and "[default0]:", time stamps like
// "2026-01-31T12:00:00.5Z ", also in brackets, and containerd's "stdout F " after them.
std::string_view PlainLogLine(std::string_view line, std::string& changed);

}  // namespace dynamiccl
