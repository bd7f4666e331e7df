// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/communicator_configs.h"

#include <algorithm>
#include <string_view>

namespace dynamiccl {
namespace {

constexpr std::string_view kConfig = "Comm config ";
constexpr std::string_view kSetTo = " set to ";

}  // namespace

void CommunicatorConfigs::Take(const std::string& place_name, const LogLine& line) {
  const size_t set_to = line.text.find(kSetTo);
  if (line.text.starts_with(kConfig) && set_to != std::string::npos) {
    TakeMember(places_[place_name], line, set_to);
    return;
  }
  if (all_.empty()) return;
  Place& place = places_[place_name];
  if (line.text.ends_with(" - Init START")) {
    Start(place);
  } else if (line.text.find(" - Init COMPLETE") != std::string::npos) {
    Complete(place);
  } else if (place.current && !place.mixed && line.text.find(" coll channels") != std::string::npos) {
    if (const auto channels = real_nccl::ParseChannels(line.text))
      all_[*place.current].channels = InitialisedChannels{*channels, line};
  }
}

// Adds a member to the configuration that is being logged. If the configuration has this member already, the
// line begins the configuration of another communicator, because an NCCL group may create several.
void CommunicatorConfigs::TakeMember(Place& place, const LogLine& line, size_t at) {
  const std::string words = line.text.substr(kConfig.size(), at - kConfig.size());
  const auto has = [&](const ConfigMember& member) { return member.words == words; };
  if (place.pending.empty() || std::ranges::any_of(all_[place.pending.back()].members, has)) {
    place.pending.push_back(all_.size());
    all_.emplace_back();
  }
  all_[place.pending.back()].members.push_back({words, line.text.substr(at + kSetTo.size()), line});
}

void CommunicatorConfigs::Start(Place& place) {
  place.mixed |= place.making > 0;
  ++place.making;
  place.current.reset();
  if (place.pending.size() == 1) place.current = place.pending.front();
  place.pending.clear();
}

void CommunicatorConfigs::Complete(Place& place) {
  place.making = std::max(place.making - 1, 0);
  if (place.making > 0) return;
  place.mixed = false;
  place.current.reset();
}

}  // namespace dynamiccl
