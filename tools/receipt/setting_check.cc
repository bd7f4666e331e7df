// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/setting_check.h"

#include <strings.h>

#include <cstdlib>
#include <utility>

namespace dynamiccl {

std::string Judged::ReadValueOf(std::string_view name) const {
  const auto found = log().ReadsOf(name);
  return found.empty() ? "" : found.front()->value;
}

const LogLine* Judged::WholeInit() const {
  for (const auto& [name, process] : log().processes) {
    if (process.shows_init()) return &*process.joined;
  }
  return nullptr;
}

Receipt InEffect(const Judged& judged, std::string effect, const LogLine& proof) {
  return {judged.asked, Standing::kInEffect, std::move(effect), "", proof, ""};
}

Receipt NotInEffect(const Judged& judged, std::string effect, std::string reason, const LogLine* proof) {
  Receipt receipt{judged.asked, Standing::kNotInEffect, std::move(effect), std::move(reason), {}, ""};
  if (proof != nullptr) receipt.proof = *proof;
  return receipt;
}

Receipt NotProvable(const Judged& judged, std::string reason, std::string bring) {
  return {judged.asked, Standing::kNotProvable, "", std::move(reason), {}, std::move(bring)};
}

int64_t NumberAsNcclReads(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 0);
}

bool IsWholeNumber(const std::string& text) {
  char* end = nullptr;
  std::strtoll(text.c_str(), &end, 0);
  return !text.empty() && end != text.c_str() && *end == '\0';
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace dynamiccl
