// SPDX-License-Identifier: Apache-2.0
// A number of channels relative to the number that a communicator may use. What one channel, few or many
// channels do to a training step can be compared between communicators of different machines.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

// The numbers are part of the site store's format (docs/formats/site_store.md).
enum class ChannelCount : uint8_t { kOne = 0, kFew = 1, kMany = 2 };
inline constexpr int kChannelCounts = 3;

// Returns kOne for one channel, kFew for up to half of `most`, and else kMany.
constexpr ChannelCount ChannelCountOf(int channels, int most) {
  if (channels == 1) return ChannelCount::kOne;
  return 2 * channels <= most ? ChannelCount::kFew : ChannelCount::kMany;
}

inline constexpr std::array<std::string_view, kChannelCounts> kChannelCountNames = {"one", "few", "many"};

// Returns the name in files: "one", "few" or "many". `count` must be an enumerator.
constexpr std::string_view Name(ChannelCount count) {
  return kChannelCountNames[static_cast<size_t>(count)];
}
// This is the inverse of Name; nullopt for an unknown name.
constexpr std::optional<ChannelCount> ParseChannelCount(std::string_view name) {
  for (size_t i = 0; i < kChannelCountNames.size(); ++i)
    if (kChannelCountNames[i] == name) return static_cast<ChannelCount>(i);
  return std::nullopt;
}

}  // namespace dynamiccl
