// SPDX-License-Identifier: Apache-2.0
// Words as a POSIX shell takes them: for commands that a user may copy.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl {

// Quoted where needed.
std::string ShellQuote(const std::string& word);
// All words, separated by spaces.
std::string ShellQuote(const std::vector<std::string>& words);

}  // namespace dynamiccl
