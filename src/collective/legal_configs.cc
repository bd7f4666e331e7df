// SPDX-License-Identifier: Apache-2.0
// NCCL's table of collective x algorithm x protocol, and the text form of configurations. Every tunable
// collective has Ring. AllReduce has Tree too. Every other algorithm exists only with protocol Simple.
#include "src/collective/legal_configs.h"

#include <fmt/format.h>

#include <charconv>

namespace dynamiccl {
namespace {

void AllowAll(ConfigMask& mask, Algorithm algorithm) {
  for (int p = 0; p < kProtocols; ++p) mask.set(ConfigIndex(algorithm, static_cast<Protocol>(p)));
}

void AllowSimple(ConfigMask& mask, Algorithm algorithm) {
  mask.set(ConfigIndex(algorithm, Protocol::kSimple));
}

}  // namespace

[[gnu::hot]] ConfigMask NcclConfigs(Collective collective) {
  ConfigMask mask;
  if (static_cast<int>(collective) >= kTunableCollectives) return mask;
  AllowAll(mask, Algorithm::kRing);
  if (collective == Collective::kAllReduce) {
    AllowAll(mask, Algorithm::kTree);
    AllowSimple(mask, Algorithm::kCollnetDirect);
    AllowSimple(mask, Algorithm::kCollnetChain);
    AllowSimple(mask, Algorithm::kNvls);
    AllowSimple(mask, Algorithm::kNvlsTree);
  }
  if (collective == Collective::kAllGather || collective == Collective::kReduceScatter) {
    AllowSimple(mask, Algorithm::kCollnetDirect);
    AllowSimple(mask, Algorithm::kNvls);
    AllowSimple(mask, Algorithm::kPat);
  }
  return mask;
}

std::string Describe(const ConfigMask& mask) {
  std::string text;
  int last = -1;
  for (size_t index = 0; index < mask.size(); ++index) {
    if (!mask.test(index)) continue;
    const int algorithm = static_cast<int>(index) / kProtocols;
    if (algorithm != last) {
      if (!text.empty()) text += ' ';
      text += Name(static_cast<Algorithm>(algorithm));
    }
    text += algorithm != last ? ':' : ',';
    text += Name(static_cast<Protocol>(index % kProtocols));
    last = algorithm;
  }
  return text.empty() ? "nothing" : text;
}

std::string Describe(const CollectiveConfig& config) {
  if (config.leaves_nccl_alone()) return "-";
  return fmt::format("{}/{}/{}", Name(config.algorithm), Name(config.protocol),
                     static_cast<int>(config.channels));
}

std::optional<CollectiveConfig> ParseConfig(std::string_view text) {
  const size_t first = text.find('/');
  if (first == text.npos) return std::nullopt;
  const size_t second = text.find('/', first + 1);
  const auto algorithm = ParseAlgorithm(text.substr(0, first));
  const auto protocol = ParseProtocol(text.substr(first + 1, second - first - 1));
  uint8_t channels = 0;
  if (second != text.npos) {
    const std::string_view digits = text.substr(second + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), channels);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  if (!algorithm || !protocol) return std::nullopt;
  const CollectiveConfig config{*algorithm, *protocol, channels};
  return config.leaves_nccl_alone() ? std::nullopt : std::optional(config);
}

std::vector<CollectiveConfig> EnumerateConfigs(const ConfigMask& allowed, int max_channels) {
  std::vector<CollectiveConfig> configs;
  for (size_t index = 0; index < allowed.size(); ++index) {
    if (!allowed.test(index)) continue;
    const auto algorithm = static_cast<Algorithm>(index / kProtocols);
    const auto protocol = static_cast<Protocol>(index % kProtocols);
    for (int channels = 1; channels < max_channels; channels *= 2) {
      configs.push_back({algorithm, protocol, static_cast<uint8_t>(channels)});
    }
    configs.push_back({algorithm, protocol, static_cast<uint8_t>(max_channels)});
  }
  return configs;
}

}  // namespace dynamiccl
