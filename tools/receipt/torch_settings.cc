// SPDX-License-Identifier: Apache-2.0
// Judges settings of PyTorch's ProcessGroupNCCL. PyTorch logs the values in use when it creates a process
// group: "ProcessGroupNCCL environments: NCCL version: 2.27.5, TORCH_NCCL_ASYNC_ERROR_HANDLING: 3, ...".
#include <fmt/format.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

constexpr const char* kBringTorchLog = "the log of a run with TORCH_CPP_LOG_LEVEL=INFO";

// Converts PyTorch's words for yes and no into 1 and 0, and a number into its value. Nothing for other texts.
std::optional<int64_t> NumberOfWord(std::string_view text) {
  for (const std::string_view yes : {"y", "yes", "t", "true"}) {
    if (text == yes) return 1;
  }
  for (const std::string_view no : {"n", "no", "f", "false"}) {
    if (text == no) return 0;
  }
  return NumberIn<int64_t>(text);
}

// Returns the value behind "NAME: " in a line; nothing if the line does not contain the name.
std::optional<std::string> ValueIn(std::string_view line, const std::string& name) {
  const size_t at = line.find(name + ": ");
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + name.size() + 2);
  return std::string(Trimmed(line.substr(0, line.find(','))));
}

}  // namespace

Receipt JudgeTorchSetting(const Judged& judged) {
  for (const LogLine& line : judged.log().notes) {
    const auto value = ValueIn(line.text, judged.asked.name);
    if (!value) continue;
    const auto asked = NumberOfWord(judged.asked.value), used = NumberOfWord(*value);
    if (*value == judged.asked.value || (asked && asked == used)) return InEffect(judged, *value, line);
    if (asked && used) return NotInEffect(judged, *value, "PyTorch uses another value", &line);
  }
  return NotProvable(judged, "no line of PyTorch shows it", kBringTorchLog);
}

}  // namespace dynamiccl
