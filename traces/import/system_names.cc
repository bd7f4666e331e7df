// SPDX-License-Identifier: Apache-2.0
// The letter before "CCL" distinguishes the libraries: NCCL, RCCL and others.
#include "traces/import/system_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Length of the "2.28.9" with which the text begins; 0 if it begins with fewer than three numbers.
size_t ThreeNumbers(std::string_view text) {
  size_t end = 0;
  for (int number = 0; number < 3; ++number) {
    if (number > 0 && text.substr(end++, 1) != ".") return 0;
    const size_t begin = end;
    end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    if (end == begin) return 0;
  }
  return end;
}

// The version that a library prints about itself. A sentence may go on behind it, as in "2.28.9, ...", or a
// text in which a line's end is written as "\\n".
std::optional<std::string> PrintedVersion(std::string_view line) {
  constexpr std::string_view kVersion = "CCL version ";
  const size_t at = line.find(kVersion);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const auto words = Words(line.substr(at + kVersion.size()));
  const size_t first = !words.empty() && words[0] == ":" ? 1 : 0;
  if (words.size() <= first) return std::nullopt;
  std::string_view version = words[first];
  version = version.substr(0, version.find_first_of("\"'\\,;)"));
  while (version.ends_with('.') || version.ends_with(':')) version.remove_suffix(1);
  if (ThreeNumbers(version) == 0) return std::nullopt;
  return fmt::format("{}CCL {}", line[at - 1], version);
}

}  // namespace

std::string LibraryOfCode(uint64_t code) {
  const uint64_t major = code < 10000 ? 1000 : 10000;
  return fmt::format("NCCL {}.{}.{}", code / major, code % major / 100, code % 100);
}

std::optional<std::string> LibraryIn(std::string_view line) {
  if (const auto printed = PrintedVersion(line)) return printed;
  constexpr std::string_view kLibrary = "ccl-library=";
  const size_t at = line.find(kLibrary);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const auto words = Words(line.substr(at + kLibrary.size()));
  const auto code = words.empty() ? std::nullopt : NumberIn<uint64_t>(words[0]);
  if (!code) return std::nullopt;
  return (line[at - 1] == 'r' ? "R" : "N") + LibraryOfCode(*code).substr(1);
}

std::string_view LibraryRelease(std::string_view library) {
  const size_t number = std::min(library.find(' '), library.size() - 1) + 1;
  return library.substr(0, number + ThreeNumbers(library.substr(number)));
}

std::string HostPattern(std::string_view host) {
  std::string pattern;
  for (const char c : host) {
    if (c < '0' || c > '9')
      pattern += c;
    else if (!pattern.ends_with('#'))
      pattern += '#';
  }
  return pattern;
}

}  // namespace dynamiccl
