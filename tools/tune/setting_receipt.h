// SPDX-License-Identifier: Apache-2.0
// Receipts: for each setting of PyTorch that was asked for, whether it is in effect, and what shows it. A
// passed argument proves nothing, because a subclass or a communication hook may ignore it. The recorded
// calls of a step prove it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/advise/recorded_step.h"
#include "tools/tune/hook_report.h"

namespace dynamiccl {

enum class SettingStanding { kInEffect, kNotInEffect, kNotProvable };
// "in effect", "not in effect" or "not provable", as in `dynamiccl receipt`.
const char* Name(SettingStanding standing);

struct SettingReceipt {
  std::string setting;
  Json asked;
  SettingStanding standing = SettingStanding::kNotProvable;
  // Holds what was seen, as one sentence without its full stop.
  std::string how;
};

// The number of calls of `collective` in a step.
size_t CountOf(const RecordedStep& step, Collective collective);

// True if FSDP2 gathers the parameters of its modules again for the backward pass. Nothing if the step has no
// ReduceScatter, or does not tell because its script accumulates gradients.
std::optional<bool> GathersAgain(const Fsdp2Report& report, const RecordedStep& step);

// The receipts of `asked`. `reports` are those of the run's processes; `step` is the run's recorded step,
// null where no calls were recorded.
std::vector<SettingReceipt> ReceiptsOf(const FrameworkValues& asked, const std::vector<HookReport>& reports,
                                       const RecordedStep* step);

// "ddp.bucket_cap_mb = 100: in effect: ..."
std::string Describe(const SettingReceipt& receipt);
Json ToJson(const std::vector<SettingReceipt>& receipts);

}  // namespace dynamiccl
