// SPDX-License-Identifier: Apache-2.0
// The checks of settings share this: a setting together with all that shows something about it, and functions
// that make the three verdicts.
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

// One asked setting and the evidence. Lives while its receipt is written.
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
  // Returns the value that NCCL read for another variable; empty if it read none.
  std::string ReadValueOf(std::string_view name) const;
  // A process whose whole initialisation was logged, so that a variable that is not read there is not set;
  // null where there is none.
  const LogLine* WholeInit() const;
};

Receipt InEffect(const Judged& judged, std::string effect, const LogLine& proof);
Receipt NotInEffect(const Judged& judged, std::string effect, std::string reason, const LogLine* proof);
Receipt NotProvable(const Judged& judged, std::string reason, std::string bring = kBringLog);

// The number as NCCL reads it: up to the first other letter, 0 where there is none.
int64_t NumberAsNcclReads(const std::string& text);
// Whether all of the text is a number.
bool IsWholeNumber(const std::string& text);
bool EqualIgnoringCase(std::string_view a, std::string_view b);

// A check returns nothing where the evidence leaves the question to JudgeReading.
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

// Defined in config_checks.cc. They judge the members of ncclConfig_t that NCCL logs, with a receipt for each
// value, and the configurations of single calls.
std::vector<Receipt> JudgeCommunicatorConfigs(const Evidence& evidence);
std::vector<Receipt> JudgeCallConfigs(const Evidence& evidence);

// reading.cc: what a variable's lines of its own say.
// NCCL complained of the value, read another one, or does not have the variable.
std::optional<Receipt> JudgeRefusal(const Judged& judged, bool read_as_asked);
// The last word where no check settles it: read, not read by a process that reads it at init, or not
// provable.
Receipt JudgeReading(const Judged& judged);

// Defined in hostccl_checks.cc. It judges a variable of NCCL by the mere fact that the job ran over hostccl.
std::optional<Receipt> JudgeByHostccl(const Judged& judged);

// own_settings.cc: settings of DynamICCL.
Receipt JudgeOwnSetting(const Judged& judged);
// Says for each rule of a file whether a decision used it, and whether it never can be used.
std::vector<Receipt> JudgeRules(const Evidence& evidence, const RulesFile& file);
// torch_settings.cc: settings of PyTorch's ProcessGroupNCCL.
Receipt JudgeTorchSetting(const Judged& judged);

}  // namespace dynamiccl
