// SPDX-License-Identifier: Apache-2.0
// Quotes words for a POSIX shell, so that a printed command can be copied and run.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl {

// `word` as it stands when it holds only characters that no shell interprets, else in single quotes.
std::string ShellQuote(const std::string& word);
// All words, each quoted where needed, separated by spaces.
std::string ShellQuote(const std::vector<std::string>& words);

}  // namespace dynamiccl
