// SPDX-License-Identifier: Apache-2.0
// Settings about how two ranks are connected, against the connections that NCCL logged ("... via P2P/CUMEM").
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// Names of distances, as NCCL spells them; it takes no other spelling, and numbers for the first six.
constexpr std::string_view kLevels[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};
constexpr std::string_view kNumberedLevels[] = {"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"};

const Connections* Find(const NcclLog& log, std::string_view kind) {
  const auto found = std::find_if(log.connections.begin(), log.connections.end(),
                                  [&](const Connections& one) { return one.kind.starts_with(kind); });
  return found == log.connections.end() ? nullptr : &*found;
}

// "40 by P2P/direct pointer, 8 by NET/IB"
std::string Summary(const NcclLog& log) {
  std::vector<std::string> texts;
  for (const Connections& one : log.connections)
    texts.push_back(
        fmt::format("{} by {}{}", one.count, one.kind, one.gpu_direct ? " with GPUDirect RDMA" : ""));
  return fmt::format("connections: {}", fmt::join(texts, ", "));
}

// The level that a valid value stands for; empty for others.
std::string LevelOf(const std::string& value) {
  if (std::find(std::begin(kLevels), std::end(kLevels), value) != std::end(kLevels)) return value;
  if (!IsWholeNumber(value)) return "";
  const int64_t number = NumberAsNcclReads(value);
  const auto last = static_cast<int64_t>(std::size(kNumberedLevels)) - 1;
  return number < 0 ? "" : std::string(kNumberedLevels[std::min(number, last)]);
}

// A value that is no level: NCCL ignores it and logs nothing. Whole logs alone show that.
std::optional<Receipt> JudgeLevelName(const Judged& judged) {
  const std::string level = LevelOf(judged.asked.value);
  if (level.empty()) {
    const LogLine* const whole = judged.WholeInit();
    if (judged.was_read() || whole == nullptr) return std::nullopt;
    return NotInEffect(judged, "",
                       "the value is no level, and NCCL ignores it without a word: LOC, NVL, PIX, PXB, PHB "
                       "or SYS, in capitals",
                       whole);
  }
  for (const ReadVariable* read : judged.reads) {
    if (read->value != level)
      return NotInEffect(judged, fmt::format("NCCL read {}", read->value),
                         "another value reached the process", &read->line);
  }
  return std::nullopt;
}

// A way to connect that was turned off: none may be there.
std::optional<Receipt> JudgeTurnedOff(const Judged& judged, std::string_view kind, bool read) {
  if (const Connections* const found = Find(judged.log(), kind))
    return NotInEffect(judged, Summary(judged.log()),
                       fmt::format("{} is used", kind.substr(0, kind.size() - 1)), &found->line);
  if (!read || judged.log().connections.empty()) return std::nullopt;
  return InEffect(judged, Summary(judged.log()), judged.log().connections.front().line);
}

// A switch that NCCL compares with 1: another word counts as 0.
std::optional<Receipt> JudgeSwitchWord(const Judged& judged, std::string_view kind) {
  if (IsWholeNumber(judged.asked.value)) return std::nullopt;
  const Connections* const found = Find(judged.log(), kind);
  if (found == nullptr) return std::nullopt;
  return NotInEffect(judged, Summary(judged.log()),
                     fmt::format("NCCL reads '{}' as 0: only 1 means yes", judged.asked.value), &found->line);
}

// The line in which NCCL reads NCCL_P2P_DISABLE=1, which releases before 2.24 log as level LOC; null without
// one.
const LogLine* ReadAsDisabled(const Judged& judged) {
  for (const ReadVariable* read : judged.log().ReadsOf("NCCL_P2P_DISABLE")) {
    if (read->value == "1") return &read->line;
  }
  const auto& asked = judged.evidence.asked;
  const bool wanted = std::any_of(asked.begin(), asked.end(), [](const AskedSetting& one) {
    return one.name == "NCCL_P2P_DISABLE" && one.value == "1";
  });
  for (const ReadVariable* read : judged.log().ReadsOf("NCCL_P2P_LEVEL")) {
    if (wanted && read->value == "LOC") return &read->line;
  }
  return nullptr;
}

}  // namespace

std::optional<Receipt> CheckP2pDisable(const Judged& judged) {
  if (auto receipt = JudgeSwitchWord(judged, "P2P/")) return receipt;
  if (NumberAsNcclReads(judged.asked.value) == 1)
    return JudgeTurnedOff(judged, "P2P/", ReadAsDisabled(judged) != nullptr);
  const Connections* const found = Find(judged.log(), "P2P/");
  if (found == nullptr || judged.asked.value != "0") return std::nullopt;
  return InEffect(judged, Summary(judged.log()), found->line);
}

std::optional<Receipt> CheckP2pLevel(const Judged& judged) {
  if (const LogLine* const off = ReadAsDisabled(judged)) {
    if (judged.asked.value != "LOC")
      return NotInEffect(judged, "no peer-to-peer", "NCCL_P2P_DISABLE=1 comes first", off);
  }
  if (auto receipt = JudgeLevelName(judged)) return receipt;
  if (LevelOf(judged.asked.value) == "LOC") return JudgeTurnedOff(judged, "P2P/", judged.was_read());
  if (!judged.was_read()) return std::nullopt;
  Receipt receipt =
      NotProvable(judged, "NCCL read it; which pairs of GPUs the level admits depends on the machine",
                  "the topology, NCCL_TOPO_DUMP_FILE=topology.xml");
  receipt.effect = judged.log().connections.empty() ? "" : Summary(judged.log());
  receipt.proof = judged.reads.front()->line;
  return receipt;
}

std::optional<Receipt> CheckShmDisable(const Judged& judged) {
  if (NumberAsNcclReads(judged.asked.value) == 1) return JudgeTurnedOff(judged, "SHM/", judged.was_read());
  if (auto receipt = JudgeSwitchWord(judged, "SHM/")) return receipt;
  const Connections* const found = Find(judged.log(), "SHM/");
  if (found == nullptr || judged.asked.value != "0") return std::nullopt;
  return InEffect(judged, Summary(judged.log()), found->line);
}

std::optional<Receipt> CheckGdrLevel(const Judged& judged) {
  if (auto receipt = JudgeLevelName(judged)) return receipt;
  const auto& all = judged.log().connections;
  const auto direct =
      std::find_if(all.begin(), all.end(), [](const Connections& one) { return one.gpu_direct; });
  const Connections* const network = Find(judged.log(), "NET/");
  if (network == nullptr) return std::nullopt;
  if (LevelOf(judged.asked.value) == "LOC") {
    if (direct != all.end())
      return NotInEffect(judged, Summary(judged.log()), "GPUDirect RDMA is used", &direct->line);
    if (!judged.was_read()) return std::nullopt;
    return InEffect(judged, Summary(judged.log()), network->line);
  }
  if (direct != all.end()) {
    if (!judged.was_read()) return std::nullopt;
    return InEffect(judged, Summary(judged.log()), direct->line);
  }
  const LogLine* const why = judged.log().Find("GPU Direct RDMA Disabled for HCA");
  if (why == nullptr) return std::nullopt;
  return NotInEffect(judged, Summary(judged.log()),
                     "the network offers no GPUDirect RDMA, so there is no level to apply", why);
}

// Other processes are reached through memory of cuMem, or through CUDA IPC without it.
std::optional<Receipt> CheckCumem(const Judged& judged) {
  const Connections* const cumem = Find(judged.log(), "P2P/CUMEM");
  const Connections* const ipc = Find(judged.log(), "P2P/IPC");
  const bool on = NumberAsNcclReads(judged.asked.value) != 0;
  const Connections* const wanted = on ? cumem : ipc;
  const Connections* const unwanted = on ? ipc : cumem;
  if (unwanted != nullptr)
    return NotInEffect(
        judged, Summary(judged.log()),
        on ? "peers are reached through CUDA IPC: the driver or the container does not support cuMem"
           : "cuMem is used",
        &unwanted->line);
  if (wanted == nullptr || !judged.was_read()) return std::nullopt;
  return InEffect(judged, Summary(judged.log()), wanted->line);
}

}  // namespace dynamiccl
