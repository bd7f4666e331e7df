// SPDX-License-Identifier: Apache-2.0
// Judges settings about NCCL's log. The log itself proves them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tools/receipt/nccl_variables.h"
#include "tools/receipt/setting_check.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kSubsystems[] = {
    "INIT", "COLL",      "P2P", "SHM",     "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL",    "PROXY",
    "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "NVTX",  "CFT",    "GIN", "RMA",   "DESTROY", "ALL"};

constexpr std::string_view kLevels[] = {"VERSION", "WARN", "INFO", "ABORT", "TRACE", "NONE"};

// Returns a logged line of level INFO. Such a line proves that the level INFO is logged.
const LogLine* FirstLine(const NcclLog& log) {
  if (!log.reads.empty()) return &log.reads.front().line;
  return log.notes.empty() ? nullptr : &log.notes.front();
}

}  // namespace

std::optional<Receipt> CheckDebug(const Judged& judged) {
  const std::string& value = judged.asked.value;
  const bool known = std::any_of(std::begin(kLevels), std::end(kLevels),
                                 [&](std::string_view level) { return EqualIgnoringCase(level, value); });
  if (!known && !value.empty())
    return NotInEffect(judged, "", "the value is no level: VERSION, WARN, INFO, ABORT or TRACE",
                       judged.asked.from.file.empty() ? nullptr : &judged.asked.from);
  const LogLine* const line = judged.log().empty() ? nullptr : FirstLine(judged.log());
  if (line == nullptr) return std::nullopt;
  for (const std::string_view level : {"INFO", "TRACE"}) {
    if (EqualIgnoringCase(value, level)) return InEffect(judged, "lines of INFO are logged", *line);
  }
  for (const std::string_view level : {"VERSION", "WARN", "ABORT", "NONE"}) {
    if (EqualIgnoringCase(value, level))
      return NotInEffect(judged, "lines of INFO are logged", "another level reached NCCL", line);
  }
  return std::nullopt;
}

// NCCL_DEBUG_FILE is in effect if `dynamiccl run` found the log file.
std::optional<Receipt> CheckDebugFile(const Judged& judged) {
  const auto& file = judged.evidence.nccl_log_file;
  if (!file) return std::nullopt;
  return InEffect(judged, file->text, *file);
}

std::optional<Receipt> CheckDebugSubsystems(const Judged& judged) {
  if (judged.release() != nullptr && !TableReaches(*judged.release())) return std::nullopt;
  std::string_view value = judged.asked.value;
  if (value.starts_with('^')) value.remove_prefix(1);
  for (const std::string_view word : CommaFields(value)) {
    const bool known = std::any_of(std::begin(kSubsystems), std::end(kSubsystems),
                                   [&](std::string_view name) { return EqualIgnoringCase(name, word); });
    if (!known && !word.empty())
      return NotInEffect(judged, "", fmt::format("'{}' is no subsystem, and NCCL ignores it", word),
                         judged.asked.from.file.empty() ? nullptr : &judged.asked.from);
  }
  return std::nullopt;
}

}  // namespace dynamiccl
