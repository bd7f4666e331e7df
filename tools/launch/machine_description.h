// SPDX-License-Identifier: Apache-2.0
// The machine on which a measurement was made, as one line for files and reports.
#pragma once

#include <string>

namespace dynamiccl {

// Processor and number of hardware threads: "AMD EPYC 7B13, 2 cores". "unknown processor" where /proc/cpuinfo
// has no model name, as on some ARM machines.
std::string MachineDescription();

}  // namespace dynamiccl
