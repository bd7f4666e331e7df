// SPDX-License-Identifier: Apache-2.0
// The settings that `dynamiccl ab` compares, as its user writes them.
#pragma once

#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// Smallest calls, in bytes, for which a setting forces a config. Smaller calls are left to NCCL: they are
// barriers and sums of losses, whose config makes no difference to the time of a step.
inline constexpr int kLeastBytesOfSetting = 1024;

// The rules in TOML (docs/formats/override_rules.md) that `setting` stands for, of these forms:
//     ring/simple/1                                    that config for all collectives that have it
//     allgather=ring/simple/1,reducescatter=ring/ll    a config for each of these collectives
//     min_ctas=32,max_ctas=64                          bounds on the channels of every communicator
// Bounds may follow one of the first two forms. An error says what is wrong with the setting.
Result<std::string> RulesOfSetting(const std::string& setting);

// Returns true if a setting, or a part of one, bounds channels: "min_ctas=32".
bool BoundsChannels(const std::string& setting);
// Returns true if a setting has a config for some call: "ring/simple/1,min_ctas=32".
bool ChoosesConfigs(const std::string& setting);

}  // namespace dynamiccl
