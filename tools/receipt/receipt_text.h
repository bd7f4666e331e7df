// SPDX-License-Identifier: Apache-2.0
// Receipts as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/receipt/receipt.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// Returns the error for files that name no setting. It says what each kind of file that was given would have
// to hold, and which command to type next.
Error NoSettingNamed(const Evidence& evidence);

// Some lines for each receipt: the verdict with the setting, what is in effect, why, the line that proves it,
// and what to bring. Those that are not in effect come first.
std::string ReceiptsText(const Evidence& evidence, const std::vector<Receipt>& receipts);

// Returns the receipts as JSON, in the order of asking (docs/formats/command_json.md).
Json ReceiptsJson(const Evidence& evidence, const std::vector<Receipt>& receipts);

// Returns an array of the receipts alone.
Json ReceiptsJson(const std::vector<Receipt>& receipts);

// Names the setting as "NCCL_ALGO=Ring", and a rule by its place and what it sets.
std::string SettingText(const Receipt& receipt);

// Writes in one line the setting, what is known of it and where that stands: "NCCL_ALGO=Ring: AllReduce: Ring
// (40 calls) (nccl.log:12)".
std::string ReceiptLine(const Receipt& receipt);

// One sentence about a setting that is not in effect: "NCCL_MAX_CTAS=0 is not in effect: ... (nccl.log:12)".
std::string ReceiptSentence(const Receipt& receipt);

}  // namespace dynamiccl
