// SPDX-License-Identifier: Apache-2.0
// Judges settings about the transport between two ranks by the connections that NCCL logged ("... via
// P2P/CUMEM").
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// The distances between GPUs that NCCL_P2P_LEVEL and similar variables accept by name, in capitals only.
// Instead of a name NCCL also accepts a number from 0 to 5, whose meaning is in kNumberedLevels.
constexpr std::string_view kLevels[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};
constexpr std::string_view kNumberedLevels[] = {"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"};

const Connections* Find(const NcclLog& log, std::string_view kind) {
  const auto found = std::find_if(log.connections.begin(), log.connections.end(),
                                  [&](const Connections& one) { return one.kind.starts_with(kind); });
  return found == log.connections.end() ? nullptr : &*found;
}

// Returns a text such as "connections: 40 by P2P/direct pointer, 8 by NET/IB".
std::string Summary(const NcclLog& log) {
  std::vector<std::string> texts;
  for (const Connections& one : log.connections)
    texts.push_back(
        fmt::format("{} by {}{}", one.count, one.kind, one.gpu_direct ? " with GPUDirect RDMA" : ""));
  return fmt::format("connections: {}", fmt::join(texts, ", "));
}

// Returns the name of the distance that a valid value stands for; empty for an invalid value.
std::string LevelOf(const std::string& value) {
  if (std::find(std::begin(kLevels), std::end(kLevels), value) != std::end(kLevels)) return value;
  if (!IsWholeNumber(value)) return "";
  const int64_t number = NumberAsNcclReads(value);
  const auto last = static_cast<int64_t>(std::size(kNumberedLevels)) - 1;
  return number < 0 ? "" : std::string(kNumberedLevels[std::min(number, last)]);
}

// Returns a refutation if the value is no distance, or if NCCL read another one. NCCL ignores an invalid
// value and logs nothing, so only a log of a whole initialisation can show that.
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

// Judges a setting that turns a transport off: no connection may use it.
std::optional<Receipt> JudgeTurnedOff(const Judged& judged, std::string_view kind, bool read) {
  if (const Connections* const found = Find(judged.log(), kind))
    return NotInEffect(judged, Summary(judged.log()),
                       fmt::format("{} is used", kind.substr(0, kind.size() - 1)), &found->line);
  if (!read || judged.log().connections.empty()) return std::nullopt;
  return InEffect(judged, Summary(judged.log()), judged.log().connections.front().line);
}

// Returns a refutation if the value is not a number and the transport is used. NCCL reads such a value as 0.
std::optional<Receipt> JudgeSwitchWord(const Judged& judged, std::string_view kind) {
  if (IsWholeNumber(judged.asked.value)) return std::nullopt;
  const Connections* const found = Find(judged.log(), kind);
  if (found == nullptr) return std::nullopt;
  return NotInEffect(judged, Summary(judged.log()),
                     fmt::format("NCCL reads '{}' as 0: only 1 means yes", judged.asked.value), &found->line);
}

// Returns the line which shows that NCCL read NCCL_P2P_DISABLE=1; null without one. Releases before 2.24 log
// NCCL_P2P_LEVEL LOC instead.
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

// Judges NCCL_CUMEM_ENABLE. With cuMem, NCCL reaches ranks in other processes by P2P/CUMEM; without cuMem by
// CUDA IPC (P2P/IPC).
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
