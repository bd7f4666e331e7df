// SPDX-License-Identifier: Apache-2.0
// Manual pages (section 1) in the man macros of groff: https://man7.org/linux/man-pages/man7/man.7.html
#pragma once

#include <string>
#include <vector>

#include "tools/manual/described_command.h"

namespace dynamiccl {

// dynamiccl.1: what the program is, every command, exit codes, environment, files.
std::string ManPageOfProgram(const std::vector<DescribedCommand>& commands);

// dynamiccl-NAME.1
std::string ManPageOf(const DescribedCommand& command);

}  // namespace dynamiccl
