// SPDX-License-Identifier: Apache-2.0
// Writes receipts: for each setting that a job asked for, whether it is in effect and the line that proves
// it. docs/receipt.md says which line proves what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/receipt/evidence.h"

namespace dynamiccl {

// kNotProvable: the files do not show whether the setting is in effect.
enum class Standing { kInEffect, kNotInEffect, kNotProvable };

// "in effect", "not in effect", "not provable".
const char* Name(Standing standing);

struct Receipt {
  AskedSetting asked;
  Standing standing = Standing::kNotProvable;
  std::string effect;            // what is in effect instead, or what is known of it; may be empty
  std::string reason;            // why it is not in effect, or not provable; empty where it is in effect
  std::optional<LogLine> proof;  // always set where a line shows that the setting is or is not in effect
  std::string bring;             // what would prove it; empty where it is proved
};

// Returns receipts in this order: one for each asked setting, in the order of `asked`; one for each config
// that a program gave to a communicator or a call; and, where the files hold decisions, one for each rule of
// the rules files.
std::vector<Receipt> WriteReceipts(const Evidence& evidence);

}  // namespace dynamiccl
