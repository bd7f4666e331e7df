// SPDX-License-Identifier: Apache-2.0
// `dynamiccl receipt`: for each setting that a job asked for, what is in effect and the line that proves it
// (tools/receipt). Exit code 1 where a setting is not in effect.
#include <fmt/format.h>

#include <algorithm>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/receipt/receipt_text.h"

namespace dynamiccl {

Result<int> ReceiptCommand(CommandLine& line) {
  std::vector<std::string> paths, words;
  bool json = false;
  line.app()
      .add_option("files", paths,
                  "Logs, traces, environments and rules of one job; the kind of each is told by content")
      ->required()
      ->check(CLI::ExistingFile);
  line.app()
      .add_option("--asked", words, "A setting that was asked for and that no file shows; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  line.app().add_flag("--json", json, "JSON on standard output");
  if (const auto exit_code = line.Parse()) return *exit_code;
  std::vector<AskedSetting> also_asked;
  for (const std::string& word : words) {
    DYNAMICCL_TRY(AskedSetting asked, ParseAskedSetting(word));
    also_asked.push_back(std::move(asked));
  }
  DYNAMICCL_TRY(const Evidence evidence, ReadEvidence(paths, also_asked));
  const std::vector<Receipt> receipts = WriteReceipts(evidence);
  if (receipts.empty()) return tl::unexpected(NoSettingNamed(evidence));
  if (json) PrintJson(ReceiptsJson(evidence, receipts));
  if (!json) fmt::print("{}", ReceiptsText(evidence, receipts));
  const bool refuted = std::any_of(receipts.begin(), receipts.end(),
                                   [](const Receipt& one) { return one.standing == Standing::kNotInEffect; });
  return refuted ? kExitResultSaysNo : kExitOk;
}

}  // namespace dynamiccl
