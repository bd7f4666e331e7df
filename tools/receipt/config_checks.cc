// SPDX-License-Identifier: Apache-2.0
// Judges settings that a program gave to one communicator (ncclConfig_t) or to one call (ncclCollConfig_t).
// For a communicator NCCL logs the values: "Comm config Max CTAs set to 4", or "Comm config maxCTAs reset to
// NCCL_MAX_CTAS=8" where an environment variable wins. For a call NCCL logs whether it could use the selected
// algorithm and protocol.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// A member of ncclConfig_t, the words by which NCCL logs that it was set, and the environment variable that
// wins over it. NCCL logs members that are missing here under their own name.
struct ConfigRow {
  std::string_view words;
  std::string_view member;
  std::string_view variable;
};
constexpr ConfigRow kMembers[] = {
    {"Blocking", "blocking", "NCCL_COMM_BLOCKING"},
    {"Min CTAs", "minCTAs", "NCCL_MIN_CTAS"},
    {"Max CTAs", "maxCTAs", "NCCL_MAX_CTAS"},
    {"CGA cluster size", "cgaClusterSize", "NCCL_CGA_CLUSTER_SIZE"},
    {"CTA policy flags", "CTAPolicy", "NCCL_CTA_POLICY"},
    {"Net name", "netName", "NCCL_NET"},
    {"Split share", "splitShare", "NCCL_COMM_SPLIT_SHARE_RESOURCES"},
    {"Collnet enable", "collnetEnable", "NCCL_COLLNET_ENABLE"},
    {"Traffic class", "trafficClass", ""},
    {"Comm name", "commName", ""},
    {"nvlsCTAs", "nvlsCTAs", "NCCL_NVLS_NCHANNELS"},
    {"shrinkShare", "shrinkShare", "NCCL_COMM_SHRINK_SHARE_RESOURCES"},
    {"nChannelsPerNetPeer", "nChannelsPerNetPeer", "NCCL_NCHANNELS_PER_NET_PEER"}};

ConfigRow RowOf(const std::string& words) {
  const auto* const row = std::ranges::find(kMembers, words, &ConfigRow::words);
  return row == std::end(kMembers) ? ConfigRow{words, words, ""} : *row;
}

// Returns a refutation if an environment variable wins over the value that the program set. NCCL logs this
// from 2.27 on. Before, NCCL logs only the values of the variables that it read.
std::optional<Receipt> JudgeOverride(const Judged& judged, const ConfigRow& row) {
  const NcclLog& log = judged.log();
  const std::string& asked = judged.asked.value;
  constexpr const char* kWins = "the environment wins over the program";
  if (const LogLine* const line = log.Find(fmt::format("Comm config {} reset to NCCL_", row.member))) {
    const std::string variable = line->text.substr(line->text.find("NCCL_"));
    if (!variable.ends_with("=" + asked)) return NotInEffect(judged, variable, kWins, line);
  }
  if (row.variable.empty()) return std::nullopt;
  for (const ReadVariable* const read : log.ReadsOf(row.variable)) {
    if (!EqualIgnoringCase(read->value, asked))
      return NotInEffect(judged, fmt::format("{}={}", row.variable, read->value), kWins, &read->line);
  }
  return std::nullopt;
}

std::optional<Receipt> JudgeLimit(const Judged& judged, const ConfigRow& row) {
  const NcclLog& log = judged.log();
  const std::string& asked = judged.asked.value;
  if (const LogLine* const line =
          log.Find(fmt::format("Invalid config {} attribute value {}", row.member, asked)))
    return NotInEffect(judged, "the communicator was not made", "NCCL refuses the value", line);
  for (const std::string& text :
       {fmt::format("{} {} is larger than #channels upper limit", row.member, asked),
        fmt::format("Config {}={} is ignored", row.member, asked)}) {
    if (const LogLine* const line = log.Find(text)) return NotInEffect(judged, "", "NCCL limits it", line);
  }
  return std::nullopt;
}

// Returns how many channels the communicator has of the kind that the member limits. Returns nothing if the
// member does not limit channels.
std::optional<int> BoundedChannels(const real_nccl::LoggedChannels& channels, std::string_view member) {
  if (member == "minCTAs" || member == "maxCTAs") return channels.collective;
  if (member == "nvlsCTAs") return channels.nvls;
  return std::nullopt;
}

bool Fits(std::string_view member, int channels, int64_t asked) {
  if (member == "minCTAs") return channels >= asked;
  return member == "maxCTAs" ? channels <= asked : channels == asked;
}

// The channels of the communicators to which the program gave the value. Communicators whose channels the log
// does not show are missing in `of`.
struct FoundChannels {
  std::vector<const InitialisedChannels*> of;
  size_t communicators = 0;  // that were given the value
};

FoundChannels ChannelsOf(const NcclLog& log, const ConfigRow& row, const std::string& value) {
  FoundChannels found;
  for (const ConfiguredCommunicator& one : log.configs.all()) {
    const bool has = std::ranges::any_of(one.members, [&](const ConfigMember& member) {
      return member.words == row.words && member.value == value;
    });
    if (!has) continue;
    ++found.communicators;
    if (one.channels) found.of.push_back(&*one.channels);
  }
  return found;
}

// Judges a bound on channels by the channels that the communicators have. Where the log does not tell the
// communicators apart, all of them must fit.
std::optional<Receipt> JudgeChannels(const Judged& judged, const ConfigRow& row) {
  const NcclLog& log = judged.log();
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  FoundChannels found = ChannelsOf(log, row, judged.asked.value);
  const bool apart = found.of.size() == found.communicators && !found.of.empty();
  if (found.of.empty())
    for (const InitialisedChannels& one : log.channels) found.of.push_back(&one);
  if (found.of.empty() || !BoundedChannels(found.of.front()->channels, row.member)) return std::nullopt;
  const auto fits = [&](const InitialisedChannels* one) {
    return Fits(row.member, *BoundedChannels(one->channels, row.member), asked);
  };
  const auto unlike = std::ranges::find_if_not(found.of, fits);
  const InitialisedChannels& shown = unlike == found.of.end() ? *found.of.front() : **unlike;
  const std::string effect = fmt::format("{}{} channels", *BoundedChannels(shown.channels, row.member),
                                         row.member == "nvlsCTAs" ? " NVLS" : "");
  if (unlike == found.of.end()) return InEffect(judged, effect, shown.line);
  if (apart) return NotInEffect(judged, effect, "the communicator has another number", &shown.line);
  return std::nullopt;
}

// Judges the cluster size by the calls. NCCL logs it for each call from 2.31 on, but without the
// communicator, so all calls must have the same size.
std::optional<Receipt> JudgeClusters(const Judged& judged, const ConfigRow& row) {
  const auto& clusters = judged.log().cluster_sizes;
  if (row.member != "cgaClusterSize" || clusters.size() != 1) return std::nullopt;
  const auto& [size, line] = *clusters.begin();
  if (size != NumberAsNcclReads(judged.asked.value)) return std::nullopt;
  return InEffect(judged, fmt::format("all calls have clusters of {}", size), line);
}

std::optional<Receipt> JudgeNetName(const Judged& judged, const ConfigRow& row) {
  if (row.member != "netName") return std::nullopt;
  const LogLine* const line = judged.log().Find("Using network ");
  if (line == nullptr) return std::nullopt;
  const std::string used = line->text.substr(line->text.rfind(' ') + 1);
  if (EqualIgnoringCase(used, judged.asked.value)) return InEffect(judged, "network " + used, *line);
  return NotInEffect(judged, "network " + used, "another network is in use", line);
}

Receipt JudgeMember(const Judged& judged, const ConfigRow& row) {
  for (const auto check : {JudgeOverride, JudgeLimit, JudgeChannels, JudgeClusters, JudgeNetName}) {
    if (auto receipt = check(judged, row)) return *receipt;
  }
  const bool bound = row.member == "minCTAs" || row.member == "maxCTAs" || row.member == "nvlsCTAs";
  Receipt receipt = bound ? NotProvable(judged,
                                        "NCCL took it, and its log does not tell which lines are about this "
                                        "communicator",
                                        "the log of a run that makes its communicators one after the other")
                          : NotProvable(judged, "NCCL took it, and logs no line of what came of it", "");
  receipt.proof = judged.asked.from;
  return receipt;
}

// Judges the selection of algorithm and protocol for one call by a line of NCCL: "config->algSelection
// "PAT_SIMPLE" cannot be honored for AllReduce; falling back ...". The line ends with "(set
// forceAlgSelection=0 ...)" instead where the call fails.
std::optional<Receipt> JudgeSelection(const Evidence& evidence, const LogLine& line) {
  constexpr std::string_view kSelection = "config->algSelection \"";
  constexpr std::string_view kPicked = "algSelection: ", kFrom = " picked within the selected set";
  const std::string& text = line.text;
  if (text.starts_with(kPicked) && text.ends_with(kFrom)) {
    const std::string picked = text.substr(kPicked.size(), text.size() - kPicked.size() - kFrom.size());
    const AskedSetting asked{"ncclCollConfig_t.algSelection", "a set with " + picked, line};
    return InEffect({asked, evidence, {}}, picked + " was picked", line);
  }
  const size_t end = text.find("\" cannot be honored for ");
  if (!text.starts_with(kSelection) || end == std::string::npos) return std::nullopt;
  const AskedSetting asked{"ncclCollConfig_t.algSelection",
                           text.substr(kSelection.size(), end - kSelection.size()), line};
  const bool falls_back = text.find("falling back") != std::string::npos;
  return NotInEffect({asked, evidence, {}}, falls_back ? "NCCL's own choice" : "the call failed",
                     "the collective does not have it on this communicator", &line);
}

}  // namespace

std::vector<Receipt> JudgeCommunicatorConfigs(const Evidence& evidence) {
  std::vector<Receipt> receipts;
  std::set<std::pair<std::string, std::string>> judged;
  for (const ConfiguredCommunicator& one : evidence.log.configs.all()) {
    for (const ConfigMember& member : one.members) {
      if (!judged.emplace(member.words, member.value).second) continue;
      const ConfigRow row = RowOf(member.words);
      const AskedSetting asked{fmt::format("ncclConfig_t.{}", row.member), member.value, member.line};
      receipts.push_back(JudgeMember({asked, evidence, {}}, row));
    }
  }
  return receipts;
}

std::vector<Receipt> JudgeCallConfigs(const Evidence& evidence) {
  std::vector<Receipt> receipts;
  for (const LogLine& line : evidence.log.notes) {
    if (auto receipt = JudgeSelection(evidence, line)) receipts.push_back(std::move(*receipt));
  }
  // DynamICCL leaves a call with a configuration of its own alone. The trace shows that the call has one, but
  // not its members.
  const bool by_variable = std::ranges::any_of(evidence.asked, [](const AskedSetting& one) {
    return one.name == "NCCL_ALGO" || one.name == "NCCL_PROTO";
  });
  if (evidence.pinned_calls == 0 || by_variable || !receipts.empty()) return receipts;
  const AskedSetting asked{
      "ncclCollConfig_t",
      fmt::format("{} call{}", evidence.pinned_calls, evidence.pinned_calls == 1 ? "" : "s"),
      *evidence.trace};
  receipts.push_back(
      NotProvable({asked, evidence, {}},
                  "calls have NCCL_ALGO, NCCL_PROTO or a configuration of their own, and the trace "
                  "does not hold which"));
  return receipts;
}

}  // namespace dynamiccl
