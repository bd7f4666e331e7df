// SPDX-License-Identifier: Apache-2.0
#include "tools/missing_file.h"

#include <filesystem>
#include <string_view>

namespace dynamiccl {
namespace {

constexpr struct {
  std::string_view end;
  const char* how;
} kKinds[] = {
    {".ctrace",
     "`dynamiccl record -o run.ctrace -- PROGRAM` writes traces, `dynamiccl trace import` makes them of "
     "other tools' files"},
    {".ctracez", "`dynamiccl trace archive run.ctrace -o run.ctracez` writes archives"},
    {".measurements", "`dynamiccl sweep -o run.measurements` writes measurements"},
    {".dcpolicy",
     "`dynamiccl train run.ctrace run.measurements -o run.dcpolicy` writes policies, and so does `dynamiccl "
     "demo`"},
    {".dcsite",
     "adaptive jobs write it: DYNAMICCL_MODE=adaptive with a policy and DYNAMICCL_SITE_STORE=PATH"},
    {".prom", "jobs write it: DYNAMICCL_METRICS=m.%r.prom"},
};

}  // namespace

std::string HowToMakeMissing(const std::vector<std::string>& words, const std::string& message) {
  for (const std::string& word : words) {
    std::error_code failed;
    if (message.find(word) == message.npos || std::filesystem::exists(word, failed)) continue;
    for (const auto& kind : kKinds) {
      if (word.ends_with(kind.end)) return std::string("check the path; ") + kind.how;
    }
  }
  return {};
}

}  // namespace dynamiccl
