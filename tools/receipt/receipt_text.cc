// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/receipt_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// Longer lines of proof are cut to this many characters. The reader only has to find the line again.
constexpr size_t kMaxProof = 120;

const char* Mark(Standing standing) {
  return standing == Standing::kInEffect ? "yes" : standing == Standing::kNotInEffect ? "NO " : "?  ";
}

// "nccl.log:12", "run.ctrace"
std::string Place(const LogLine& line) {
  return line.number == 0 ? line.file : fmt::format("{}:{}", line.file, line.number);
}

std::string ReceiptText(const Receipt& receipt) {
  std::string text = fmt::format("{}  {}\n", Mark(receipt.standing), SettingText(receipt));
  const bool repeats = receipt.proof && receipt.proof->text == receipt.effect;
  if (!receipt.effect.empty() && !repeats) text += fmt::format("     {}\n", receipt.effect);
  if (!receipt.reason.empty()) text += fmt::format("     {}\n", receipt.reason);
  if (receipt.proof) {
    const std::string& proof = receipt.proof->text;
    const std::string shown = proof.size() > kMaxProof ? proof.substr(0, kMaxProof) + "..." : proof;
    text += fmt::format("     {}{}{}\n", Place(*receipt.proof), shown.empty() ? "" : ": ", shown);
  }
  if (!receipt.bring.empty()) text += fmt::format("     -> bring {}\n", receipt.bring);
  return text;
}

size_t CountOf(const std::vector<Receipt>& receipts, Standing standing) {
  return static_cast<size_t>(std::count_if(receipts.begin(), receipts.end(),
                                           [&](const Receipt& one) { return one.standing == standing; }));
}

// Says which lines are missing in the files. If there is a log of NCCL, the text is about that log, because
// the user can make one that has the lines.
std::string MissingContent(const Evidence& evidence) {
  constexpr const char* kLine = "such as 'NCCL_ALGO set by environment to Ring'";
  const NcclLog& log = evidence.log;
  if (log.empty()) {
    const EvidenceFile& file = evidence.files.front();
    return fmt::format("{} ({}) holds none; NCCL's log has a line for each, {}", file.path, file.kind, kLine);
  }
  const auto file = std::ranges::find(evidence.files, "log", &EvidenceFile::kind);
  const bool whole = std::any_of(log.processes.begin(), log.processes.end(),
                                 [](const auto& one) { return one.second.begins && one.second.joined; });
  return fmt::format("{} has no line {}{}", file->path, kLine,
                     whole
                         ? ": the job set none, or NCCL_DEBUG_SUBSYS left out ENV"
                         : "; NCCL writes them as it makes a communicator, at NCCL_DEBUG=INFO with ENV among "
                           "NCCL_DEBUG_SUBSYS");
}

Json LineJson(const LogLine& line) {
  return {{"file", line.file}, {"line", line.number}, {"text", line.text}};
}

}  // namespace

std::string SettingText(const Receipt& receipt) {
  if (receipt.asked.name != "rule") return fmt::format("{}={}", receipt.asked.name, receipt.asked.value);
  return fmt::format("{}: {}", Place(receipt.asked.from), receipt.asked.value);
}

std::string ReceiptsText(const Evidence& evidence, const std::vector<Receipt>& receipts) {
  std::string text =
      fmt::format("{} settings asked: {} in effect, {} not, {} not provable from here{}\n", receipts.size(),
                  CountOf(receipts, Standing::kInEffect), CountOf(receipts, Standing::kNotInEffect),
                  CountOf(receipts, Standing::kNotProvable),
                  evidence.release() == nullptr ? "" : "; NCCL " + evidence.release()->release.text());
  for (const Standing standing : {Standing::kNotInEffect, Standing::kNotProvable, Standing::kInEffect}) {
    for (const Receipt& receipt : receipts) {
      if (receipt.standing == standing) text += ReceiptText(receipt);
    }
  }
  return text;
}

Json ReceiptsJson(const std::vector<Receipt>& receipts) {
  Json list = Json::array();
  for (const Receipt& receipt : receipts) {
    list.push_back(
        {{"setting", receipt.asked.name},
         {"asked", receipt.asked.value},
         {"asked_in", receipt.asked.from.file.empty() ? Json("--asked") : LineJson(receipt.asked.from)},
         {"standing", Name(receipt.standing)},
         {"effect", receipt.effect},
         {"reason", receipt.reason},
         {"proof", receipt.proof ? LineJson(*receipt.proof) : Json()},
         {"bring", receipt.bring}});
  }
  return list;
}

Json ReceiptsJson(const Evidence& evidence, const std::vector<Receipt>& receipts) {
  Json files = Json::array();
  for (const EvidenceFile& file : evidence.files) files.push_back({{"path", file.path}, {"kind", file.kind}});
  return {{"schema", 1},
          {"nccl", evidence.release() == nullptr ? Json() : Json(evidence.release()->release.text())},
          {"files", files},
          {"receipts", ReceiptsJson(receipts)}};
}

Error NoSettingNamed(const Evidence& evidence) {
  Error error{ErrorKind::kInvalidArgument, "the files name no setting: " + MissingContent(evidence)};
  error.hint = fmt::format(
      "bring {}, then `dynamiccl receipt FILE...`; or say what was asked: `dynamiccl receipt {} --asked "
      "NCCL_ALGO=Ring`, or add the output of `env` in the job",
      kBringLog, evidence.files.front().path);
  return error;
}

std::string ReceiptLine(const Receipt& receipt) {
  const char* const between = receipt.reason.empty() || receipt.effect.empty() ? "" : "; ";
  return fmt::format("{}: {}{}{}{}", SettingText(receipt), receipt.reason, between, receipt.effect,
                     receipt.proof ? fmt::format(" ({})", Place(*receipt.proof)) : "");
}

std::string ReceiptSentence(const Receipt& receipt) {
  return fmt::format("{} is not in effect: {}{}{}{}", SettingText(receipt), receipt.reason,
                     receipt.effect.empty() ? "" : "; ", receipt.effect,
                     receipt.proof ? fmt::format(" ({})", Place(*receipt.proof)) : "");
}

}  // namespace dynamiccl
