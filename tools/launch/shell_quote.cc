// SPDX-License-Identifier: Apache-2.0
// Quotes in the one form that works in every POSIX shell: single quotes, with '\'' for a quote inside.
#include "tools/launch/shell_quote.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace dynamiccl {

std::string ShellQuote(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string("_-+=./:,@%").find(c) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ShellQuote(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + ShellQuote(word);
  return text;
}

}  // namespace dynamiccl
