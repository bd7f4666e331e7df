// SPDX-License-Identifier: Apache-2.0
// Judges settings about topology files, graph files and the results of NCCL's graph search.
#include <fmt/format.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// Returns the line of a graph that NCCL found and that contains `words`: "Pattern 4, crossNic 1, nChannels 4,
// ...". Null without one.
const LogLine* GraphWith(const NcclLog& log, std::string_view words) {
  const auto found = std::find_if(log.notes.begin(), log.notes.end(), [&](const LogLine& line) {
    return line.text.starts_with("Pattern ") && line.text.find(words) != std::string::npos;
  });
  return found == log.notes.end() ? nullptr : &*found;
}

// True if the log shows a communicator of several nodes: "comm 0x.. rank 0 nRanks 4 nNodes 2 ...".
bool HasNodes(const NcclLog& log) {
  return std::any_of(log.notes.begin(), log.notes.end(), [](const LogLine& line) {
    return line.text.starts_with("comm ") && line.text.find(" nNodes ") != std::string::npos &&
           line.text.find(" nNodes 1 ") == std::string::npos;
  });
}

std::optional<Receipt> CheckXmlFile(const Judged& judged, std::string_view could_not,
                                    std::string_view loaded) {
  if (const LogLine* const line = judged.log().Find(could_not, judged.asked.value))
    return NotInEffect(judged, "", "NCCL could not open the file", line);
  const LogLine* const line = judged.log().Find(loaded);
  if (line == nullptr || !judged.was_read()) return std::nullopt;
  return InEffect(judged, line->text, *line);
}

}  // namespace

std::optional<Receipt> CheckTopologyFile(const Judged& judged) {
  return CheckXmlFile(judged, "Could not open XML topology file ",
                      "Loading topology file " + judged.asked.value);
}

std::optional<Receipt> CheckGraphFile(const Judged& judged) {
  return CheckXmlFile(judged, "Could not open XML graph file ", "channels loaded from XML graph");
}

std::optional<Receipt> CheckNvls(const Judged& judged) {
  const auto& channels = judged.log().channels;
  if (channels.empty() || !IsWholeNumber(judged.asked.value)) return std::nullopt;
  const auto with = std::find_if(channels.begin(), channels.end(),
                                 [](const InitialisedChannels& one) { return one.channels.nvls > 0; });
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  const bool found = with != channels.end();
  if (asked == 0 && found)
    return NotInEffect(judged, fmt::format("{} NVLS channels", with->channels.nvls), "NVLS is used",
                       &with->line);
  if (!judged.was_read()) return std::nullopt;
  if (asked == 0) return InEffect(judged, "no NVLS", channels.front().line);
  if (found) return InEffect(judged, fmt::format("{} NVLS channels", with->channels.nvls), with->line);
  // With NCCL_NVLS_ENABLE=2 NCCL decides whether to use NVLS, and here it decided against NVLS.
  if (asked != 1)
    return InEffect(judged, "no NVLS: NCCL decides, and found no use for it", channels.front().line);
  const LogLine* const why = judged.log().Find("NVLS multicast support is not available");
  return NotInEffect(judged, "no NVLS channels", why == nullptr ? "NCCL made none" : "the GPUs have no NVLS",
                     why == nullptr ? &channels.front().line : why);
}

// Only a network plugin provides CollNet; NCCL itself does not.
std::optional<Receipt> CheckCollnet(const Judged& judged) {
  const NcclLog& log = judged.log();
  const auto used = std::find_if(log.connections.begin(), log.connections.end(),
                                 [](const Connections& one) { return one.kind.starts_with("COLLNET/"); });
  const bool wanted = NumberAsNcclReads(judged.asked.value) == 1;
  if (used != log.connections.end()) {
    if (wanted) return InEffect(judged, used->kind, used->line);
    return NotInEffect(judged, used->kind, "CollNet is used", &used->line);
  }
  if (!wanted) return std::nullopt;
  for (const std::string_view words : {"Cannot initialize CollNet", "less than CollNet node threshold"}) {
    if (const LogLine* const line = log.Find(words))
      return NotInEffect(judged, "no CollNet", "NCCL gave it up", line);
  }
  const LogLine* const whole = judged.WholeInit();
  if (whole == nullptr || log.Find("Loaded collnet plugin") != nullptr) return std::nullopt;
  return NotInEffect(judged, "no CollNet",
                     "no network plugin brought it: none of the lines 'Loaded collnet plugin' is there",
                     whole);
}

std::optional<Receipt> CheckCrossNic(const Judged& judged) {
  if (!HasNodes(judged.log()) || !IsWholeNumber(judged.asked.value)) return std::nullopt;
  const LogLine* const across = GraphWith(judged.log(), "crossNic 1");
  const LogLine* const same = GraphWith(judged.log(), "crossNic 0");
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  if (asked == 0 && across != nullptr)
    return NotInEffect(judged, across->text, "a graph crosses adapters", across);
  if (!judged.was_read()) return std::nullopt;
  if (asked == 0 && same != nullptr) return InEffect(judged, "no graph crosses adapters", *same);
  if (asked == 1 && across != nullptr) return InEffect(judged, across->text, *across);
  if (asked == 1 && same != nullptr)
    return NotInEffect(judged, "no graph crosses adapters", "NCCL found none that does", same);
  return std::nullopt;
}

}  // namespace dynamiccl
