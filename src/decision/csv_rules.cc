// SPDX-License-Identifier: Apache-2.0
// Rules in the CSV of NCCL's example tuner (plugins/tuner/example), with four more columns, one rule a line:
//     collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff
//     [,phase[,stage[,role[,memory]]]]]]
// -1 means "any" in a condition and "NCCL decides" for channels. Empty lines and lines that begin with # are
// skipped. Errors read "<name>:<line>: column <n>: ...".
#include "src/decision/override_rules.h"

#include <charconv>

namespace dynamiccl {
namespace {

// NCCL's example has eight columns and two optional ones. After them come phase, stage, role and memory.
constexpr size_t kRequiredColumns = 8;
constexpr size_t kMaxColumns = 14;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> SplitColumns(std::string_view line) {
  std::vector<std::string_view> columns;
  while (true) {
    const size_t comma = line.find(',');
    columns.push_back(Trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return columns;
    line.remove_prefix(comma + 1);
  }
}

// Reads one line and remembers its number for error messages. The text and the name must outlive the reader.
class LineReader {
 public:
  LineReader(std::string_view line, const std::string& name, int number)
      : columns_(SplitColumns(line)), name_(name), number_(number) {}

  Result<OverrideRule> Read() const {
    if (columns_.size() < kRequiredColumns || columns_.size() > kMaxColumns) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}:{}: column {}: {} columns, a rule has 8 to 14", name_,
                    number_, columns_.size(), columns_.size()),
          "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"
          "[,numPipeOps[,regBuff[,phase[,stage[,role[,memory]]]]]]");
    }
    OverrideRule rule;
    rule.line = number_;
    DYNAMICCL_CHECK_OK(ReadRange(rule));
    DYNAMICCL_CHECK_OK(ReadConfig(rule));
    DYNAMICCL_CHECK_OK(ReadConditions(rule));
    return rule;
  }

 private:
  Status ReadRange(OverrideRule& rule) const {
    const auto collective = ParseCollective(columns_[0]);
    if (!collective || static_cast<int>(*collective) >= kTunableCollectives) {
      return Wrong(0, "is not one of broadcast, reduce, allgather, reducescatter, allreduce");
    }
    rule.collective = *collective;
    DYNAMICCL_TRY(rule.min_bytes, Number<uint64_t>(1, 0, UINT64_MAX));
    DYNAMICCL_TRY(rule.max_bytes, Number<uint64_t>(2, 0, UINT64_MAX));
    if (rule.max_bytes < rule.min_bytes) return Wrong(2, "is smaller than min_bytes");
    return {};
  }

  Status ReadConfig(OverrideRule& rule) const {
    const auto algorithm = ParseAlgorithm(columns_[3]);
    if (!algorithm || *algorithm == Algorithm::kUndefined) {
      return Wrong(3, "is not one of tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat");
    }
    const auto protocol = ParseProtocol(columns_[4]);
    if (!protocol || *protocol == Protocol::kUndefined) return Wrong(4, "is not one of ll, ll128, simple");
    DYNAMICCL_TRY(const int64_t channels, Number<int64_t>(5, -1, kMaxNcclChannels));
    if (channels == 0) return Wrong(5, "channels: write -1 to let NCCL decide, or 1 to 64");
    rule.config = {*algorithm, *protocol, static_cast<uint8_t>(channels < 0 ? 0 : channels)};
    return {};
  }

  Status ReadConditions(OverrideRule& rule) const {
    DYNAMICCL_TRY(rule.n_nodes, Condition(6));
    DYNAMICCL_TRY(rule.n_ranks, Condition(7));
    DYNAMICCL_TRY(rule.n_pipe_ops, Condition(8));
    DYNAMICCL_TRY(const std::optional<int> registered, Condition(9));
    // A buffer may be registered on one rank and not on another. A rule with a condition on registration
    // would make ranks decide differently.
    if (registered)
      return Wrong(9, "regBuff differs between ranks and cannot be a condition: write -1 or leave it out");
    DYNAMICCL_TRY(rule.phase, Named(10, ParsePhase, "unknown, forward, backward, optimizer, other"));
    DYNAMICCL_TRY(rule.stage, Named(11, ParseStage, "0, 1, 2, 3, unknown"));
    DYNAMICCL_TRY(rule.role, Named(12, ParseRole, NamesOfRoles()));
    DYNAMICCL_TRY(rule.memory, Named(13, ParseMemoryPressure, "low, medium, high, unknown"));
    return {};
  }

  // Reads a condition by its name. Returns an empty optional if the column is missing or -1.
  template <typename Value>
  Result<std::optional<Value>> Named(size_t column, std::optional<Value> (*parse)(std::string_view),
                                     std::string_view names) const {
    if (column >= columns_.size() || columns_[column] == "-1") return std::optional<Value>{};
    if (const auto value = parse(columns_[column])) return value;
    return tl::unexpected(Wrong(column, fmt::format("is not -1 or one of {}", names)).error());
  }

  template <typename Integer>
  Result<Integer> Number(size_t column, Integer least, Integer most) const {
    const std::string_view text = columns_[column];
    Integer value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < least || value > most) {
      return tl::unexpected(Wrong(column, fmt::format("is not a number from {} to {}", least, most)).error());
    }
    return value;
  }

  // Reads a condition that is a number. Returns an empty optional if the column is missing or -1.
  Result<std::optional<int>> Condition(size_t column) const {
    if (column >= columns_.size() || columns_[column] == "-1") return std::optional<int>{};
    DYNAMICCL_TRY(const int value, Number<int>(column, 0, INT32_MAX));
    return std::optional<int>{value};
  }

  // Returns an error about a column and quotes the column's text.
  Status Wrong(size_t column, std::string_view what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}:{}: column {}: '{}' {}", name_, number_, column + 1,
                     columns_[column].substr(0, 40), what);
  }

  std::vector<std::string_view> columns_;
  const std::string& name_;
  int number_;
};

}  // namespace

Result<std::vector<OverrideRule>> ParseCsvRules(std::string_view text, const std::string& name) {
  std::vector<OverrideRule> rules;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    DYNAMICCL_TRY(OverrideRule rule, LineReader(line, name, number).Read());
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace dynamiccl
