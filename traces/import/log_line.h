// SPDX-License-Identifier: Apache-2.0
// Removes what launchers and terminals add to the lines of a log: colours, time stamps, process numbers.
#pragma once

#include <string>

namespace dynamiccl {

// Returns the line without such additions. Removed are ANSI colours and OpenMPI's "[1,0]<stdout>:" anywhere
// in the line. At its start, in any order, are removed: srun's "0: ", torchrun's "[rank0]:" and
// "[default0]:", time stamps like "2026-01-31T12:00:00.5Z ", also in brackets, and containerd's "stdout F "
// after them.
std::string PlainLogLine(std::string line);

}  // namespace dynamiccl
