// SPDX-License-Identifier: Apache-2.0
// Formats receipts as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/receipt/receipt.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// Returns the error for files that name no setting. It says which lines are missing in each kind of file that
// was given, and which command to type next.
Error NoSettingNamed(const Evidence& evidence);

// Returns some lines for each receipt: the verdict and the setting, what is in effect, why, the line that
// proves it, and which file would prove it. Settings that are not in effect come first.
std::string ReceiptsText(const Evidence& evidence, const std::vector<Receipt>& receipts);

// Returns the receipts as JSON, in the order of asking (docs/formats/command_json.md).
Json ReceiptsJson(const Evidence& evidence, const std::vector<Receipt>& receipts);

// Returns only the array of receipts as JSON.
Json ReceiptsJson(const std::vector<Receipt>& receipts);

// Returns "NCCL_ALGO=Ring" for a setting. For a rule, returns its file, its line and what it sets.
std::string SettingText(const Receipt& receipt);

// Returns one line with the setting, what is known about it and the place of the proof: "NCCL_ALGO=Ring:
// AllReduce: Ring (40 calls) (nccl.log:12)".
std::string ReceiptLine(const Receipt& receipt);

// One sentence about a setting that is not in effect: "NCCL_MAX_CTAS=0 is not in effect: ... (nccl.log:12)".
std::string ReceiptSentence(const Receipt& receipt);

}  // namespace dynamiccl
