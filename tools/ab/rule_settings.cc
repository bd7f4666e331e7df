// SPDX-License-Identifier: Apache-2.0
#include "tools/ab/rule_settings.h"

#include <fmt/format.h>

#include <sstream>

#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

std::string RuleFor(Collective collective, const std::string& config) {
  return fmt::format("[[rule]]\ncollective = \"{}\"\nmin_bytes = {}\nconfig = \"{}\"\n", Name(collective),
                     kLeastBytesOfSetting, config);
}

Result<CollectiveConfig> ConfigOf(const std::string& text, const std::string& setting) {
  if (text == "nccl") return kLeaveNcclAlone;
  if (const auto config = ParseConfig(text)) return *config;
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}' in '{}' is no configuration", text, setting),
                  "a setting is default, a file of rules, a config such as ring/simple/1, or "
                  "allgather=ring/simple/1,allreduce=tree/ll");
}

// Returns the rules for the part "collective=config" of a setting.
Result<std::string> OneCollective(const std::string& part, const std::string& setting) {
  const size_t sign = part.find('=');
  const std::string name = part.substr(0, sign);
  const auto collective = ParseCollective(name);
  if (sign == std::string::npos || !collective || static_cast<int>(*collective) >= kTunableCollectives)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}' in '{}' names no collective", part, setting),
                    "collectives are broadcast, reduce, allgather, reducescatter and allreduce");
  const std::string text = part.substr(sign + 1);
  DYNAMICCL_TRY(const CollectiveConfig config, ConfigOf(text, setting));
  if (!config.leaves_nccl_alone() &&
      !NcclConfigs(*collective).test(ConfigIndex(config.algorithm, config.protocol)))
    return MakeError(ErrorKind::kInvalidArgument, "NCCL has no {} for {}", text, Name(*collective));
  return RuleFor(*collective, text);
}

}  // namespace

Result<std::string> RulesOfSetting(const std::string& setting) {
  std::string rules = "version = 1\n";
  if (setting.find('=') != std::string::npos) {
    std::istringstream parts(setting);
    for (std::string part; std::getline(parts, part, ',');) {
      DYNAMICCL_TRY(const std::string rule, OneCollective(part, setting));
      rules += rule;
    }
    return rules;
  }
  DYNAMICCL_TRY(const CollectiveConfig config, ConfigOf(setting, setting));
  for (int i = 0; i < kTunableCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const bool has_it = config.leaves_nccl_alone() ||
                        NcclConfigs(collective).test(ConfigIndex(config.algorithm, config.protocol));
    if (has_it) rules += RuleFor(collective, setting);
  }
  return rules;
}

}  // namespace dynamiccl
