// SPDX-License-Identifier: Apache-2.0
// Receipts as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/receipt/receipt.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// The error where the files name no setting: what each kind of file that was given would have to hold, and
// the command to type next.
Error NoSettingNamed(const Evidence& evidence);

// Some lines for each receipt: the verdict with the setting, what is in effect, why, the line that proves it,
// and what to bring. Those that are not in effect come first.
std::string ReceiptsText(const Evidence& evidence, const std::vector<Receipt>& receipts);

// The same as JSON, in the order of asking (docs/formats/command_json.md).
Json ReceiptsJson(const Evidence& evidence, const std::vector<Receipt>& receipts);

// The receipts alone, as an array.
Json ReceiptsJson(const std::vector<Receipt>& receipts);

// "NCCL_ALGO=Ring"; of a rule its place and what it sets.
std::string SettingText(const Receipt& receipt);

// The setting, what is known of it and where that stands, in one line: "NCCL_ALGO=Ring: AllReduce: Ring (40
// calls) (nccl.log:12)".
std::string ReceiptLine(const Receipt& receipt);

// One sentence about a setting that is not in effect: "NCCL_MAX_CTAS=0 is not in effect: ... (nccl.log:12)".
std::string ReceiptSentence(const Receipt& receipt);

}  // namespace dynamiccl
