// SPDX-License-Identifier: Apache-2.0
// Receipts: for each setting that a job asked for, what is in effect and the line that proves it.
// docs/receipt.md says which line proves what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/receipt/evidence.h"

namespace dynamiccl {

// kNotProvable: the files do not show it. A receipt never guesses.
enum class Standing { kInEffect, kNotInEffect, kNotProvable };

// "in effect", "not in effect", "not provable".
const char* Name(Standing standing);

struct Receipt {
  AskedSetting asked;
  Standing standing = Standing::kNotProvable;
  std::string effect;            // what is in effect instead, or what is known of it; may be empty
  std::string reason;            // why it is not in effect, or not provable; empty where it is in effect
  std::optional<LogLine> proof;  // always there where the setting is or is not in effect by a line
  std::string bring;             // what would prove it; empty where it is proved
};

// Returns a receipt for each asked setting, in the order of asking; then for each config that a program gave
// a communicator or a call; then, where the files hold decisions, for each rule of an asked file.
std::vector<Receipt> WriteReceipts(const Evidence& evidence);

}  // namespace dynamiccl
