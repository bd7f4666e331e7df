// SPDX-License-Identifier: Apache-2.0
// On what a measurement was made.
#pragma once

#include <string>

namespace dynamiccl {

// "AMD EPYC 7B13, 2 cores"
std::string MachineDescription();

}  // namespace dynamiccl
