// SPDX-License-Identifier: Apache-2.0
// The file is text: a first line, a policy line, one line for each entry in the order of the keys, and an end
// line with the SHA-256 of everything before it. A truncated file lacks the end line, so it is not mistaken
// for a shorter complete file.
#include "src/decision/saved_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "src/base/whole_file.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kFirstLine = "dynamiccl-decisions 1";
constexpr std::string_view kPolicy = "policy ";
constexpr std::string_view kEnd = "end ";
// The most bytes of a file: many times what 20 shapes with every key of a table need.
constexpr size_t kMaxBytes = 16 << 20;
constexpr size_t kColumns = 6;

std::string LineOf(const SavedKey& key, const CollectiveConfig& config) {
  return fmt::format("{} {} {} {} {} {}\n", key.n_ranks, key.n_nodes, Name(key.key.collective),
                     LowerBound(key.key.size_class), Name(key.key.role), Describe(config));
}

std::string EndLine(std::string_view body) {
  return fmt::format("{}{}\n", kEnd, HexDigestOf(body));
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Returns nothing unless the whole text is a number of at most `most`.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, Number most) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

// Returns the size class that begins at this number of bytes; nothing if none begins there.
std::optional<SizeClass> ParseSizeClass(std::string_view text) {
  const auto bytes = ParseNumber<uint64_t>(text, UINT64_MAX);
  if (!bytes || LowerBound(SizeClassOf(*bytes)) != *bytes) return std::nullopt;
  return SizeClassOf(*bytes);
}

// Adds the entry of a line. Returns what is wrong with the line, or an empty text.
std::string TakeLine(std::string_view line, SavedDecisions& decisions) {
  const std::vector<std::string_view> columns = Split(line, ' ');
  if (columns.size() != kColumns)
    return fmt::format("{} columns instead of ranks, nodes, collective, bytes, role, config", columns.size());
  const auto ranks = ParseNumber<int>(columns[0], INT32_MAX);
  const auto nodes = ParseNumber<int>(columns[1], INT32_MAX);
  if (!ranks || !nodes || *ranks < 1 || *nodes < 1) return "ranks and nodes are numbers from 1";
  const auto collective = ParseCollective(columns[2]);
  if (!collective || static_cast<int>(*collective) >= kTunableCollectives)
    return fmt::format("'{}' is no collective that can be chosen for", columns[2]);
  const auto size_class = ParseSizeClass(columns[3]);
  if (!size_class) return fmt::format("no size class begins at '{}' bytes", columns[3]);
  const auto role = ParseRole(columns[4]);
  if (!role) return fmt::format("'{}' is no role", columns[4]);
  const auto config = columns[5] == "-" ? kLeaveNcclAlone : ParseConfig(columns[5]);
  // The text must be exactly what Describe writes, so that equal entries have equal texts.
  if (!config || Describe(*config) != columns[5])
    return fmt::format("'{}' is no configuration such as Ring/LL128/4, or -", columns[5]);
  const SavedKey key{*ranks, *nodes, {*collective, *size_class, *role}};
  if (decisions.configs().contains(key)) return "the same key as on an earlier line";
  decisions.Set(key, *config);
  return "";
}

// Reads the policy line and removes it from `body`.
Result<SavedDecisions> TakePolicy(std::string_view& body, const std::string& name) {
  const std::string_view line = body.substr(0, body.find('\n'));
  const std::string_view hash = line.starts_with(kPolicy) ? line.substr(kPolicy.size()) : "";
  const bool is_hash = hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == hash.npos;
  if (!is_hash && hash != "none")
    return MakeError(ErrorKind::kCorrupt, "{}:2: is not \"{}\" and a SHA-256 or none", name, kPolicy);
  body.remove_prefix(std::min(body.size(), line.size() + 1));
  return SavedDecisions(is_hash ? std::string(hash) : "");
}

// Returns the text before the end line if the end line's checksum is right; else an error.
Result<std::string_view> CheckEnd(std::string_view text, const std::string& name) {
  const size_t line = text.size() < 2 ? std::string_view::npos : text.rfind('\n', text.size() - 2);
  const size_t end = line == std::string_view::npos ? 0 : line + 1;
  if (!text.substr(end).starts_with(kEnd) || text.back() != '\n') {
    return WithHint(MakeError(ErrorKind::kCorrupt, "{}: the end line is missing: the file is cut", name),
                    "remove the file and let a run with DYNAMICCL_REPRODUCIBLE=1 write it again");
  }
  if (text.substr(end) == EndLine(text.substr(0, end))) return text.substr(0, end);
  return WithHint(
      MakeError(ErrorKind::kCorrupt, "{}: the checksum of the end line is not that of the file", name),
      "the file was changed; choices of your own belong into DYNAMICCL_RULES");
}

}  // namespace

Result<SavedDecisions> SavedDecisions::Parse(std::string_view text, const std::string& name) {
  if (!text.starts_with(kFirstLine) || text.substr(kFirstLine.size(), 1) != "\n") {
    return WithHint(MakeError(ErrorKind::kCorrupt, "{}:1: is not \"{}\"", name, kFirstLine),
                    "DYNAMICCL_DECISIONS names a file that DYNAMICCL_REPRODUCIBLE=1 wrote");
  }
  DYNAMICCL_TRY(std::string_view body, CheckEnd(text, name));
  body.remove_prefix(kFirstLine.size() + 1);
  DYNAMICCL_TRY(SavedDecisions decisions, TakePolicy(body, name));
  for (int number = 3; !body.empty(); ++number) {
    const size_t end = body.find('\n');
    const std::string wrong = TakeLine(body.substr(0, end), decisions);
    if (!wrong.empty()) return MakeError(ErrorKind::kCorrupt, "{}:{}: {}", name, number, wrong);
    body.remove_prefix(end + 1);
  }
  return decisions;
}

Result<SavedDecisions> SavedDecisions::ReadFile(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadSmallFile(path, kMaxBytes));
  return Parse(text, path);
}

CollectiveConfig SavedDecisions::Find(const SavedKey& key) const {
  const auto found = configs_.find(key);
  return found == configs_.end() ? kLeaveNcclAlone : found->second;
}

std::string SavedDecisions::Text() const {
  std::string text =
      fmt::format("{}\n{}{}\n", kFirstLine, kPolicy, policy_hash_.empty() ? "none" : policy_hash_);
  for (const auto& [key, config] : configs_) text += LineOf(key, config);
  return text + EndLine(text);
}

Sha256Digest SavedDecisions::digest() const {
  const std::string text = Text();
  return Sha256Of(std::as_bytes(std::span(text)));
}

}  // namespace dynamiccl
