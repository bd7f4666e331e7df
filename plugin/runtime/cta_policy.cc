// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/cta_policy.h"

#include <strings.h>

#include <algorithm>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {
namespace {

constexpr std::pair<std::string_view, int> kPolicies[] = {{"DEFAULT", NCCL_CTA_POLICY_DEFAULT},
                                                          {"EFFICIENCY", NCCL_CTA_POLICY_EFFICIENCY},
                                                          {"ZERO", NCCL_CTA_POLICY_ZERO}};

bool EqualInAnyCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::optional<int> ParseCtaPolicy(std::string_view text) {
  if (!text.empty() && text[0] >= '0' && text[0] <= '2') return text[0] - '0';
  std::optional<int> policy;
  while (!text.empty()) {
    const std::string_view token = text.substr(0, text.find('|'));
    for (const auto& [name, bit] : kPolicies) {
      if (EqualInAnyCase(token, name)) policy = policy.value_or(0) | bit;
    }
    text.remove_prefix(std::min(token.size() + 1, text.size()));
  }
  return policy;
}

}  // namespace dynamiccl
