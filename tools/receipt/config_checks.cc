// SPDX-License-Identifier: Apache-2.0
// Settings that a program gave one communicator (ncclConfig_t), as NCCL logs them: "Comm config Max CTAs set
// to 4", and "Comm config maxCTAs reset to NCCL_MAX_CTAS=8" where a variable wins.
#include <fmt/format.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kConfig = "Comm config ";
constexpr std::string_view kSetTo = " set to ";

// NCCL's words for a member, and the member's name in lines about it.
constexpr std::pair<std::string_view, std::string_view> kMembers[] = {{"Min CTAs", "minCTAs"},
                                                                      {"Max CTAs", "maxCTAs"},
                                                                      {"CGA cluster size", "cgaClusterSize"},
                                                                      {"CTA policy flags", "CTAPolicy"},
                                                                      {"Net name", "netName"},
                                                                      {"Split share", "splitShare"},
                                                                      {"Collnet enable", "collnetEnable"}};

std::string MemberOf(std::string_view words) {
  for (const auto& [logged, member] : kMembers) {
    if (logged == words) return std::string(member);
  }
  return std::string(words);
}

// Whether every communicator of the log fits, so that this one does too.
bool AllFit(const NcclLog& log, const std::string& member, int64_t asked) {
  if (log.channels.empty() || (member != "minCTAs" && member != "maxCTAs")) return false;
  return std::all_of(log.channels.begin(), log.channels.end(), [&](const InitialisedChannels& one) {
    return member == "minCTAs" ? one.channels.collective >= asked : one.channels.collective <= asked;
  });
}

Receipt JudgeMember(const Judged& judged, const std::string& member) {
  const NcclLog& log = judged.log();
  const std::string& asked = judged.asked.value;
  if (const LogLine* const line = log.Find(fmt::format("{}{} reset to NCCL_", kConfig, member))) {
    const std::string variable = line->text.substr(line->text.find("NCCL_"));
    if (!variable.ends_with("=" + asked))
      return NotInEffect(judged, variable, "the environment wins over the program", line);
  }
  if (const LogLine* const line =
          log.Find(fmt::format("{} {} is larger than #channels upper limit", member, asked)))
    return NotInEffect(judged, "", "NCCL limits it", line);
  if (AllFit(log, member, NumberAsNcclReads(asked)))
    return InEffect(judged, fmt::format("{} channels", log.channels.front().channels.collective),
                    log.channels.front().line);
  return NotProvable(judged,
                     "NCCL took it, and its log does not tell which lines are about this communicator",
                     "the log of a run with this communicator alone");
}

}  // namespace

std::vector<Receipt> JudgeCommunicatorConfigs(const Evidence& evidence) {
  std::vector<Receipt> receipts;
  for (const LogLine& line : evidence.log.notes) {
    const size_t at = line.text.find(kSetTo);
    if (!line.text.starts_with(kConfig) || at == std::string::npos) continue;
    const std::string member =
        MemberOf(std::string_view(line.text).substr(kConfig.size(), at - kConfig.size()));
    const AskedSetting asked{"ncclConfig_t." + member, line.text.substr(at + kSetTo.size()), line};
    receipts.push_back(JudgeMember({asked, evidence, {}}, member));
  }
  return receipts;
}

}  // namespace dynamiccl
