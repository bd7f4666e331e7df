// SPDX-License-Identifier: Apache-2.0
// Judges NCCL's variables in a job that ran over hostccl. hostccl has few of these variables, and its table
// of them is part of this program.
#include <algorithm>

#include "src/hostccl/parameters.h"
#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// Variables that bound channels. hostccl ignores a value that is no number from 1 to 1024, and logs that.
constexpr std::string_view kBounds[] = {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS",
                                        "NCCL_MAX_NCHANNELS"};
constexpr int64_t kMaxChannelsAsked = 1024;

}  // namespace

std::optional<Receipt> JudgeByHostccl(const Judged& judged) {
  if (!judged.evidence.over_hostccl) return std::nullopt;
  const std::string& name = judged.asked.name;
  if (hostccl::FindParameter(name.c_str()) == nullptr)
    return NotInEffect(judged, "", "the job ran over hostccl, which does not have this variable of NCCL",
                       nullptr);
  if (std::ranges::find(kBounds, name) == std::end(kBounds)) return std::nullopt;
  const int64_t number = NumberAsNcclReads(judged.asked.value);
  if (IsWholeNumber(judged.asked.value) && number >= 1 && number <= kMaxChannelsAsked) return std::nullopt;
  return NotInEffect(judged, "no bound", "hostccl ignores what is no number from 1 to 1024", nullptr);
}

}  // namespace dynamiccl
