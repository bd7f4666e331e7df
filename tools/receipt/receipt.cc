// SPDX-License-Identifier: Apache-2.0
// Holds the table of checks. A setting is judged in this order: by a line in which NCCL rejects it, by what
// the setting should cause, and by whether NCCL read it.
#include "tools/receipt/receipt.h"

#include <algorithm>
#include <set>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

struct CheckRow {
  std::string_view name;
  SettingCheck check;
  // True: NCCL logs the value as it was set. False: NCCL logs it in another form, and the check compares the
  // values.
  bool read_as_asked = true;
};

constexpr CheckRow kChecks[] = {{"NCCL_ALGO", CheckAlgorithm},
                                {"NCCL_PROTO", CheckProtocol},
                                {"NCCL_CTA_POLICY", CheckCtaPolicy},
                                {"NCCL_WIN_ENABLE", CheckWindows},
                                {"NCCL_MIN_NCHANNELS", CheckLeastChannels},
                                {"NCCL_MIN_CTAS", CheckLeastChannels},
                                {"NCCL_MIN_NRINGS", CheckLeastChannels},
                                {"NCCL_MAX_NCHANNELS", CheckMostChannels},
                                {"NCCL_MAX_CTAS", CheckMostChannels},
                                {"NCCL_MAX_NRINGS", CheckMostChannels},
                                {"NCCL_NVLS_NCHANNELS", CheckNvlsChannels},
                                {"NCCL_P2P_DISABLE", CheckP2pDisable, false},
                                {"NCCL_P2P_LEVEL", CheckP2pLevel},
                                {"NCCL_SHM_DISABLE", CheckShmDisable},
                                {"NCCL_NET_GDR_LEVEL", CheckGdrLevel},
                                {"NCCL_CUMEM_ENABLE", CheckCumem},
                                {"NCCL_NET", CheckNet},
                                {"NCCL_NET_PLUGIN", CheckNetPlugin},
                                {"NCCL_IB_DISABLE", CheckIbDisable},
                                {"NCCL_IB_HCA", CheckIbHca},
                                {"NCCL_SOCKET_IFNAME", CheckSocketInterface},
                                {"NCCL_SOCKET_NTHREADS", CheckSocketThreads},
                                {"NCCL_NSOCKS_PERTHREAD", CheckSocketThreads},
                                {"NCCL_TUNER_PLUGIN", CheckTunerPlugin},
                                {"NCCL_PROFILER_PLUGIN", CheckProfilerPlugin},
                                {"NCCL_TOPO_FILE", CheckTopologyFile},
                                {"NCCL_GRAPH_FILE", CheckGraphFile},
                                {"NCCL_NVLS_ENABLE", CheckNvls},
                                {"NCCL_COLLNET_ENABLE", CheckCollnet},
                                {"NCCL_CROSS_NIC", CheckCrossNic},
                                {"NCCL_DEBUG", CheckDebug},
                                {"NCCL_DEBUG_FILE", CheckDebugFile},
                                {"NCCL_DEBUG_SUBSYS", CheckDebugSubsystems}};

SettingCheck CheckOf(std::string_view name, bool& read_as_asked) {
  // NCCL logs the name of a level, even if the variable's value was a number. The log then differs from the
  // value that the user set.
  read_as_asked = !name.ends_with("_LEVEL") && name != "NCCL_NETDEVS_POLICY";
  for (const CheckRow& row : kChecks) {
    if (row.name != name) continue;
    read_as_asked = read_as_asked && row.read_as_asked;
    return row.check;
  }
  return name.starts_with("NCCL_IB_") ? CheckOtherIb : nullptr;
}

Receipt JudgeNcclSetting(const Judged& judged) {
  // This variable belongs to NVIDIA's example tuner, not to NCCL.
  if (judged.asked.name == "NCCL_TUNER_CONFIG_FILE") return *CheckTunerConfigFile(judged);
  bool read_as_asked = true;
  const SettingCheck check = CheckOf(judged.asked.name, read_as_asked);
  if (auto receipt = JudgeRefusal(judged, read_as_asked)) return *receipt;
  if (auto receipt = JudgeByHostccl(judged)) return *receipt;
  if (check != nullptr) {
    if (auto receipt = check(judged)) return *receipt;
  }
  return JudgeReading(judged);
}

Receipt Judge(const AskedSetting& asked, const Evidence& evidence) {
  const Judged judged{asked, evidence, evidence.log.ReadsOf(asked.name)};
  if (asked.name.starts_with("TORCH_NCCL_")) return JudgeTorchSetting(judged);
  return asked.name.starts_with("NCCL_") ? JudgeNcclSetting(judged) : JudgeOwnSetting(judged);
}

}  // namespace

const char* Name(Standing standing) {
  switch (standing) {
    case Standing::kInEffect:
      return "in effect";
    case Standing::kNotInEffect:
      return "not in effect";
    case Standing::kNotProvable:
      break;
  }
  return "not provable";
}

std::vector<Receipt> WriteReceipts(const Evidence& evidence) {
  std::vector<Receipt> receipts;
  std::set<std::pair<std::string, std::string>> judged;
  for (const AskedSetting& asked : evidence.asked) {
    if (judged.emplace(asked.name, asked.value).second) receipts.push_back(Judge(asked, evidence));
  }
  for (Receipt& receipt : JudgeCommunicatorConfigs(evidence)) receipts.push_back(std::move(receipt));
  for (Receipt& receipt : JudgeCallConfigs(evidence)) receipts.push_back(std::move(receipt));
  for (const RulesFile& file : evidence.rules) {
    for (Receipt& receipt : JudgeRules(evidence, file)) receipts.push_back(std::move(receipt));
  }
  return receipts;
}

}  // namespace dynamiccl
