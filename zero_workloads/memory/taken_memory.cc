// SPDX-License-Identifier: Apache-2.0
// Parses the value of --memory-taken and looks up the entry of a step. Decimal numbers are parsed with
// std::from_chars, which does not depend on the locale.
#include "zero_workloads/memory/taken_memory.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace dynamiccl::zero {
namespace {

// The prefix that distinguishes a file from a schedule.
constexpr std::string_view kFile = "file:";

// The error that Parse returns for `text`, with a hint that shows both forms.
tl::unexpected<Error> Bad(const std::string& text, const char* why) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--memory-taken {}: {}", text, why),
                  "for example 0:0,20:24M,40:0 (from step 20 on 24 MiB are taken), or file:PATH");
}

// Parses a non-negative decimal number at the start of `text` and sets `rest` to what follows it.
bool ParseNumber(std::string_view text, int64_t* value, std::string_view* rest) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  *rest = text.substr(static_cast<size_t>(end - text.data()));
  return error == std::errc() && *value >= 0;
}

}  // namespace

Result<int64_t> ParseSize(const std::string& text) {
  int64_t value = 0;
  std::string_view unit;
  // Units and the bits by which they shift a number to the left.
  constexpr std::pair<std::string_view, int> kUnits[] = {{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}};
  if (ParseNumber(text, &value, &unit)) {
    for (const auto& [name, shift] : kUnits) {
      if (unit == name && value <= INT64_MAX >> shift) return value << shift;
    }
  }
  return MakeError(ErrorKind::kInvalidArgument, "'{}' is no size", text);
}

Result<TakenMemory> TakenMemory::Parse(const std::string& text) {
  TakenMemory taken;
  if (text.starts_with(kFile)) {
    taken.path_ = text.substr(kFile.size());
    if (!std::ifstream(taken.path_)) return Bad(text, "the file cannot be read");
    return taken;
  }
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    Change change{};
    std::string_view rest;
    if (!ParseNumber(entry, &change.step, &rest) || !rest.starts_with(':'))
      return Bad(text, "an entry is STEP:SIZE");
    const auto bytes = ParseSize(std::string(rest.substr(1)));
    if (!bytes) return Bad(text, "an entry is STEP:SIZE");
    change.bytes = *bytes;
    if (!taken.schedule_.empty() && change.step <= taken.schedule_.back().step)
      return Bad(text, "steps must rise");
    taken.schedule_.push_back(change);
  }
  return taken;
}

int64_t TakenMemory::At(int64_t step) {
  if (!path_.empty()) {
    std::string word;
    std::ifstream(path_) >> word;
    if (const auto bytes = ParseSize(word)) last_ = *bytes;
    return last_;
  }
  for (const Change& change : schedule_) {
    if (change.step <= step) last_ = change.bytes;
  }
  return last_;
}

}  // namespace dynamiccl::zero
