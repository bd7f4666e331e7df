// SPDX-License-Identifier: Apache-2.0
// The parts that all checks of settings share: a setting with the evidence about it, and functions that make
// a receipt with each of the three verdicts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/receipt/receipt.h"

namespace dynamiccl {

// Names the log that the user should bring when the given one says too little.
inline constexpr const char* kBringLog =
    "the log of every rank of a short run with NCCL_DEBUG=INFO "
    "NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,GRAPH,TUNING,NET,P2P";

// One setting that was asked for, and the evidence. It lives only while the receipt is written.
struct Judged {
  const AskedSetting& asked;
  const Evidence& evidence;
  std::vector<const ReadVariable*> reads;  // of this variable, in all processes

  const NcclLog& log() const { return evidence.log; }
  // Null where the release is not known.
  const real_nccl::NcclRelease* release() const {
    return evidence.release() == nullptr ? nullptr : &evidence.release()->release;
  }
  bool was_read() const { return !reads.empty(); }
  // Returns the value that NCCL read for the variable `name`; empty if NCCL read none.
  std::string ReadValueOf(std::string_view name) const;
  // Returns a line of a process whose whole initialisation was logged; null if there is no such process. A
  // variable that such a process did not log as read is not set in that process.
  const LogLine* WholeInit() const;
};

Receipt InEffect(const Judged& judged, std::string effect, const LogLine& proof);
Receipt NotInEffect(const Judged& judged, std::string effect, std::string reason, const LogLine* proof);
Receipt NotProvable(const Judged& judged, std::string reason, std::string bring = kBringLog);

// Returns the number at the beginning of the text, as NCCL reads it; 0 if the text begins with no number.
int64_t NumberAsNcclReads(const std::string& text);
// True if all of the text is a number.
bool IsWholeNumber(const std::string& text);
bool EqualIgnoringCase(std::string_view a, std::string_view b);

// A check returns nothing if the evidence decides nothing; JudgeReading then judges the setting.
using SettingCheck = std::optional<Receipt> (*)(const Judged&);

// choice_checks.cc
std::optional<Receipt> CheckAlgorithm(const Judged& judged);
std::optional<Receipt> CheckProtocol(const Judged& judged);
std::optional<Receipt> CheckCtaPolicy(const Judged& judged);
std::optional<Receipt> CheckWindows(const Judged& judged);
// channel_checks.cc
std::optional<Receipt> CheckLeastChannels(const Judged& judged);
std::optional<Receipt> CheckMostChannels(const Judged& judged);
std::optional<Receipt> CheckNvlsChannels(const Judged& judged);
// connection_checks.cc
std::optional<Receipt> CheckP2pDisable(const Judged& judged);
std::optional<Receipt> CheckP2pLevel(const Judged& judged);
std::optional<Receipt> CheckShmDisable(const Judged& judged);
std::optional<Receipt> CheckGdrLevel(const Judged& judged);
std::optional<Receipt> CheckCumem(const Judged& judged);
// network_checks.cc
std::optional<Receipt> CheckNet(const Judged& judged);
std::optional<Receipt> CheckNetPlugin(const Judged& judged);
std::optional<Receipt> CheckIbDisable(const Judged& judged);
std::optional<Receipt> CheckIbHca(const Judged& judged);
std::optional<Receipt> CheckOtherIb(const Judged& judged);
std::optional<Receipt> CheckSocketInterface(const Judged& judged);
std::optional<Receipt> CheckSocketThreads(const Judged& judged);
// plugin_checks.cc
std::optional<Receipt> CheckTunerPlugin(const Judged& judged);
std::optional<Receipt> CheckProfilerPlugin(const Judged& judged);
std::optional<Receipt> CheckTunerConfigFile(const Judged& judged);
// topology_checks.cc
std::optional<Receipt> CheckTopologyFile(const Judged& judged);
std::optional<Receipt> CheckGraphFile(const Judged& judged);
std::optional<Receipt> CheckNvls(const Judged& judged);
std::optional<Receipt> CheckCollnet(const Judged& judged);
std::optional<Receipt> CheckCrossNic(const Judged& judged);
// log_checks.cc
std::optional<Receipt> CheckDebug(const Judged& judged);
std::optional<Receipt> CheckDebugFile(const Judged& judged);
std::optional<Receipt> CheckDebugSubsystems(const Judged& judged);

// Defined in config_checks.cc. The first judges the members of ncclConfig_t that NCCL logs, with one receipt
// for each value. The second judges the configurations of single calls.
std::vector<Receipt> JudgeCommunicatorConfigs(const Evidence& evidence);
std::vector<Receipt> JudgeCallConfigs(const Evidence& evidence);

// Defined in reading.cc. Returns a refutation if NCCL rejected the value, read another value, or does not
// have the variable.
std::optional<Receipt> JudgeRefusal(const Judged& judged, bool read_as_asked);
// Judges a setting that no other check settles. The verdict is "not in effect" if a process did not read a
// variable that it must read at init, else "not provable".
Receipt JudgeReading(const Judged& judged);

// Defined in hostccl_checks.cc. Judges a variable of NCCL only by the fact that the job ran over hostccl.
std::optional<Receipt> JudgeByHostccl(const Judged& judged);

// Defined in own_settings.cc. Judges a setting of DynamICCL.
Receipt JudgeOwnSetting(const Judged& judged);
// Returns a receipt for each rule of a file: whether a decision used the rule, or the rule can never be used.
std::vector<Receipt> JudgeRules(const Evidence& evidence, const RulesFile& file);
// Defined in torch_settings.cc. Judges a setting of PyTorch's ProcessGroupNCCL.
Receipt JudgeTorchSetting(const Judged& judged);

}  // namespace dynamiccl
