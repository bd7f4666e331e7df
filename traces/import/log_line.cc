// SPDX-License-Identifier: Apache-2.0
// Each kind of prefix has a function that returns its length at the start of a text, 0 where it is absent.
#include "traces/import/log_line.h"

#include <algorithm>
#include <string_view>

namespace dynamiccl {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Removes "ESC [ parameters letter" everywhere.
void RemoveColours(std::string& line) {
  for (size_t at = 0; (at = line.find("\x1b[", at)) != std::string::npos;) {
    const size_t end = line.find_first_not_of("0123456789;?", at + 2);
    line.erase(at, end == std::string::npos ? end : end + 1 - at);
  }
}

// Removes OpenMPI's "[1,0]<stdout>:" everywhere.
void RemoveProcessTags(std::string& line) {
  for (size_t at = 0; (at = line.find(">:", at)) != std::string::npos;) {
    const size_t open = line.rfind('[', at);
    const size_t tag = open == std::string::npos ? open : line.find(']', open);
    const bool is_tag = tag != std::string::npos && line.compare(tag + 1, 4, "<std") == 0;
    if (is_tag) line.erase(open, at + 2 - open);
    at = is_tag ? open : at + 2;
  }
}

// Matches the task number that srun writes, such as " 0: ". srun pads the number to equal width.
size_t TaskNumber(std::string_view text) {
  const size_t number = std::min(text.find_first_not_of(' '), text.size());
  const size_t end = text.find_first_not_of(kDigits, number);
  return end != std::string_view::npos && end > number && text.substr(end, 2) == ": " ? end + 2 : 0;
}

// Matches "[rank0]:" or "[default0]:", and the blank after it.
size_t RankTag(std::string_view text) {
  const size_t close = text.starts_with('[') ? text.find("]:") : std::string_view::npos;
  if (close == std::string_view::npos) return 0;
  const std::string_view name = text.substr(1, close - 1);
  if (!name.starts_with("rank") && !name.starts_with("default")) return 0;
  return close + 2 + text.substr(close + 2).starts_with(' ');
}

// True if the text begins like `shape`, in which 0 stands for any digit and T for 'T' or a blank.
bool HasShape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  return std::equal(shape.begin(), shape.end(), text.begin(), [](char wanted, char c) {
    if (wanted == '0') return IsDigit(c);
    return wanted == 'T' ? c == 'T' || c == ' ' : c == wanted;
  });
}

// Matches for example "2026-01-31T12:00:00.5Z ", "[2026-01-31 12:00:00,500] " and "2026-01-31T12:00:00+01:00
// stdout F ".
size_t TimeStamp(std::string_view text) {
  const size_t open = text.starts_with('[');
  if (!HasShape(text.substr(open), "0000-00-00T00:00:00")) return 0;
  const size_t zone = text.find_first_not_of("0123456789.,", open + 19);
  if (zone == std::string_view::npos) return 0;
  size_t end = text.find_first_not_of("0123456789:Z+-", zone);
  if (end == std::string_view::npos) return 0;
  if (open == 1 && text[end++] != ']') return 0;
  if (text.substr(end, 1) != " ") return 0;
  ++end;
  for (const std::string_view stream : {"stdout F ", "stderr F "}) {
    if (text.substr(end).starts_with(stream)) return end + stream.size();
  }
  return end;
}

bool HasTextOfNccl(std::string_view text) {
  return text.find(" NCCL INFO ") != std::string_view::npos ||
         text.find(" NCCL WARN ") != std::string_view::npos;
}

}  // namespace

size_t OverwrittenBytes(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t bytes = line.rfind('\r') + 1;
  return HasTextOfNccl(line.substr(0, bytes)) && !HasTextOfNccl(line.substr(bytes)) ? 0 : bytes;
}

std::string_view PlainLogLine(std::string_view line, std::string& changed) {
  line.remove_prefix(OverwrittenBytes(line));
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('\x1b') != std::string_view::npos || line.find(">:") != std::string_view::npos) {
    changed = line;
    RemoveColours(changed);
    RemoveProcessTags(changed);
    line = changed;
  }
  for (size_t length = 1; length > 0; line.remove_prefix(length))
    length = std::max({TaskNumber(line), RankTag(line), TimeStamp(line)});
  return line;
}

}  // namespace dynamiccl
