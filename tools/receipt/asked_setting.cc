// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/asked_setting.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

bool IsName(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; });
}

// Splits a line such as "export NCCL_ALGO='Ring'" into name and value. Returns nothing for a line that
// assigns nothing.
std::optional<std::pair<std::string, std::string>> Assignment(std::string_view line) {
  line = Trimmed(line);
  if (line.starts_with("export ")) line = Trimmed(line.substr(7));
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || !IsName(line.substr(0, equals))) return std::nullopt;
  std::string_view value = Trimmed(line.substr(equals + 1));
  const bool quoted =
      value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front();
  if (quoted) value = value.substr(1, value.size() - 2);
  return std::pair(std::string(line.substr(0, equals)), std::string(value));
}

// The lines of a text; /proc/<pid>/environ ends each with a zero byte instead.
std::vector<std::string_view> LinesOf(std::string_view content) {
  std::vector<std::string_view> lines;
  while (!content.empty()) {
    const size_t end = content.find_first_of(std::string_view("\n\0", 2));
    lines.push_back(content.substr(0, end));
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
  }
  return lines;
}

bool IsBlank(std::string_view line) {
  line = Trimmed(line);
  return line.empty() || line.starts_with('#');
}

}  // namespace

Result<AskedSetting> ParseAskedSetting(std::string_view word) {
  const auto found = Assignment(word);
  if (!found)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--asked {}: expected NAME=VALUE", word),
                    "for example --asked NCCL_ALGO=Ring");
  if (!ConcernsCollectives(found->first))
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--asked {}: {} is no setting of collectives",
                              word, found->first),
                    "receipts are written for NCCL_*, TORCH_NCCL_*, DYNAMICCL_* and HOSTCCL_*");
  return AskedSetting{found->first, found->second, {}};
}

bool ConcernsCollectives(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"NCCL_", "TORCH_NCCL_", "DYNAMICCL_", "HOSTCCL_"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<AskedSetting> ParseEnvironment(const std::string& path, const std::string& content) {
  std::vector<AskedSetting> asked;
  size_t number = 0;
  for (const std::string_view line : LinesOf(content)) {
    ++number;
    const auto found = IsBlank(line) ? std::nullopt : Assignment(line);
    if (found && ConcernsCollectives(found->first))
      asked.push_back({found->first, found->second, {path, number, std::string(Trimmed(line))}});
  }
  return asked;
}

bool LooksLikeEnvironment(std::string_view head) {
  size_t assigning = 0, others = 0;
  for (const std::string_view line : LinesOf(head)) {
    if (IsBlank(line)) continue;
    const bool assigns = Assignment(line).has_value();
    if (!assigns && assigning == 0) return false;
    ++(assigns ? assigning : others);
  }
  return assigning > others;
}

}  // namespace dynamiccl
