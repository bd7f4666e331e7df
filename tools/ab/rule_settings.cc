// SPDX-License-Identifier: Apache-2.0
#include "tools/ab/rule_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"
#include "src/decision/override_rules.h"

namespace dynamiccl {
namespace {

const std::array<std::string, 2> kBounds = {"min_ctas=", "max_ctas="};

std::string RuleFor(Collective collective, const std::string& config) {
  return fmt::format("[[rule]]\ncollective = \"{}\"\nmin_bytes = {}\nconfig = \"{}\"\n", Name(collective),
                     kLeastBytesOfSetting, config);
}

Result<CollectiveConfig> ConfigOf(const std::string& text, const std::string& setting) {
  if (text == "nccl") return kLeaveNcclAlone;
  if (const auto config = ParseConfig(text)) return *config;
  const std::string where = text == setting ? "" : fmt::format(" in '{}'", setting);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}'{} is no configuration", text, where),
                  "a setting is default, a file of rules, a config such as ring/simple/1, or "
                  "allgather=ring/simple/1,allreduce=tree/ll; the program to run comes after `--`");
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

// Returns the rules for a part that is a config alone.
Result<std::string> AllCollectives(const std::string& part, const std::string& setting) {
  DYNAMICCL_TRY(const CollectiveConfig config, ConfigOf(part, setting));
  std::string rules;
  for (int i = 0; i < kTunableCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const bool has_it = config.leaves_nccl_alone() ||
                        NcclConfigs(collective).test(ConfigIndex(config.algorithm, config.protocol));
    if (has_it) rules += RuleFor(collective, part);
  }
  return rules;
}

// The rules of a setting's parts, in the order in which a file has them.
struct RuleParts {
  std::string configs;
  std::string bounds;
  bool of_all = false;  // a config without a collective was read
};

Status AddPart(const std::string& part, const std::string& setting, RuleParts& parts) {
  if (BoundsChannels(part)) {
    parts.bounds += fmt::format("{} = {}\n", part.substr(0, part.find('=')), part.substr(part.find('=') + 1));
    return {};
  }
  const bool of_all = part.find('=') == std::string::npos;
  if (parts.of_all || (of_all && !parts.configs.empty()))
    return MakeError(ErrorKind::kInvalidArgument, "'{}' has more than one config for a collective", setting);
  DYNAMICCL_TRY(const std::string rules,
                of_all ? AllCollectives(part, setting) : OneCollective(part, setting));
  parts.configs += rules;
  parts.of_all = of_all;
  return {};
}

}  // namespace

bool BoundsChannels(const std::string& setting) {
  return std::ranges::any_of(kBounds, [&](const std::string& bound) {
    return setting.starts_with(bound) || setting.find("," + bound) != std::string::npos;
  });
}

bool ChoosesConfigs(const std::string& setting) {
  const auto rules = RulesOfSetting(setting);
  return rules && rules->find("[[rule]]") != std::string::npos;
}

Result<std::string> RulesOfSetting(const std::string& setting) {
  RuleParts parts;
  std::istringstream texts(setting);
  for (std::string part; std::getline(texts, part, ',');) DYNAMICCL_CHECK_OK(AddPart(part, setting, parts));
  if (!parts.bounds.empty()) parts.bounds.insert(0, "[[communicator]]\n");
  std::string rules = "version = 1\n" + parts.bounds + parts.configs;
  DYNAMICCL_TRY(const OverrideRules checked, OverrideRules::Parse(rules, setting + ".toml"));
  if (!checked.any_about_communicators() && checked.rules().empty())
    return MakeError(ErrorKind::kInvalidArgument, "'{}' is no configuration", setting);
  return rules;
}

}  // namespace dynamiccl
