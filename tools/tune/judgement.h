// SPDX-License-Identifier: Apache-2.0
// The verdict about one setting, for the receipts (setting_receipt.h).
#pragma once

#include <string>
#include <utility>

#include "src/base/counted.h"
#include "tools/tune/setting_receipt.h"

namespace dynamiccl {

struct Judgement {
  SettingStanding standing;
  // Holds what was seen, as one sentence without its full stop.
  std::string how;
};

inline Judgement InEffect(std::string how) {
  return {SettingStanding::kInEffect, std::move(how)};
}
inline Judgement NotInEffect(std::string how) {
  return {SettingStanding::kNotInEffect, std::move(how)};
}
inline Judgement NotProvable(std::string how) {
  return {SettingStanding::kNotProvable, std::move(how)};
}

}  // namespace dynamiccl
