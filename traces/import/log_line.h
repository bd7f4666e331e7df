// SPDX-License-Identifier: Apache-2.0
// What launchers and terminals put into the lines of a log: colours, time stamps, the number of the process.
#pragma once

#include <string>

namespace dynamiccl {

// The line without it. Taken away are ANSI colours, OpenMPI's "[1,0]<stdout>:" wherever it stands, and at the
// start, in any order: srun's "0: ", torchrun's "[rank0]:" and "[default0]:", time stamps like
// "2026-01-31T12:00:00.5Z ", also in brackets, and containerd's "stdout F " behind them.
std::string PlainLogLine(std::string line);

}  // namespace dynamiccl
