// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/program_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace dynamiccl {
namespace {

// The first release whose ncclConfig_t has bounds on channels; NCCL ignores these members in configs of older
// programs.
constexpr unsigned kFirstWithCtas = 21700;
// A larger `size` is no valid size: this is many times the size in any release.
constexpr size_t kMaxConfigBytes = 4096;
// ncclConfig_t of the oldest supported NCCL, 2.19. Every later NCCL accepts it and knows which members it
// lacks.
constexpr unsigned kOldest = 21900;
constexpr size_t kOldestBytes = 48;
static_assert(kOldestBytes > offsetof(ncclConfig_t, splitShare) &&
              kOldestBytes <= offsetof(ncclConfig_t, commName));

ncclConfig_t ConfigThatSetsNothing() {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.size = kOldestBytes;
  config.version = kOldest;
  return config;
}

}  // namespace

int MemberOf(const ncclConfig_t& config, size_t offset) {
  int value = NCCL_CONFIG_UNDEF_INT;
  if (config.size >= offset + sizeof(value))
    std::memcpy(&value, reinterpret_cast<const char*>(&config) + offset, sizeof(value));
  return value;
}

bool IsBlocking(const ncclConfig_t& config) {
  constexpr size_t kNeeded = offsetof(ncclConfig_t, blocking) + sizeof(int);
  return config.size < kNeeded || config.blocking != 0;
}

std::string PinnedCtas(const ncclConfig_t& config) {
  constexpr std::pair<const char*, size_t> kPins[] = {{"minCTAs", offsetof(ncclConfig_t, minCTAs)},
                                                      {"maxCTAs", offsetof(ncclConfig_t, maxCTAs)},
                                                      {"nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs)}};
  std::string pinned;
  for (const auto& [name, offset] : kPins) {
    const int value = MemberOf(config, offset);
    if (value != NCCL_CONFIG_UNDEF_INT)
      pinned += fmt::format("{}{}={}", pinned.empty() ? "" : " ", name, value);
  }
  return pinned;
}

CtaBounds CtasOf(const ncclConfig_t* config) {
  const auto set = [&](size_t offset) {
    const int value = config == nullptr ? NCCL_CONFIG_UNDEF_INT : MemberOf(*config, offset);
    return value == NCCL_CONFIG_UNDEF_INT ? 0 : value;
  };
  return {set(offsetof(ncclConfig_t, minCTAs)), set(offsetof(ncclConfig_t, maxCTAs))};
}

std::string WhyWithoutCtas(const ncclConfig_t* config) {
  if (config == nullptr) return {};
  const bool fits = config->size >= offsetof(ncclConfig_t, netName) && config->size <= kMaxConfigBytes;
  if (!fits || config->magic != NCCL_API_MAGIC || config->version < kFirstWithCtas)
    return "its configuration is that of an NCCL before 2.17, or none";
  return {};
}

bool ChoosesItself(const ncclCollConfig_t* config) noexcept {
  if (config == nullptr) return false;
  ncclCollConfig_t given = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  std::memcpy(static_cast<void*>(&given), config, std::min(config->size, sizeof(given)));
  for (const int number : {given.minCTAs, given.maxCTAs, given.nvlsCTAs, given.CTAPolicy}) {
    if (number != NCCL_CONFIG_UNDEF_INT) return true;
  }
  return given.algSelection != nullptr;
}

ConfigCopy::ConfigCopy(const ncclConfig_t* given) {
  const ncclConfig_t nothing = ConfigThatSetsNothing();
  if (given == nullptr) given = &nothing;
  // NCCL may read members that a short config lacks before it checks the config's size. So the copy has room
  // for all members.
  const size_t room = std::max(given->size, sizeof(ncclConfig_t));
  bytes_ = std::make_unique<std::byte[]>(room);
  std::memcpy(bytes_.get(), &nothing, sizeof(nothing));
  std::memcpy(bytes_.get(), given, given->size);
  Own(offsetof(ncclConfig_t, netName), net_name_);
  Own(offsetof(ncclConfig_t, commName), communicator_name_);
}

void ConfigCopy::Own(size_t offset, std::string& text) {
  const char* name = nullptr;
  if (get()->size < offset + sizeof(name)) return;
  std::memcpy(&name, bytes_.get() + offset, sizeof(name));
  if (name == nullptr) return;
  text = name;
  name = text.c_str();
  std::memcpy(bytes_.get() + offset, &name, sizeof(name));
}

void ConfigCopy::Add(const CtaBounds& ctas) {
  const auto set = [](int& member, int value) {
    if (value != 0 && member == NCCL_CONFIG_UNDEF_INT) member = value;
  };
  set(get()->minCTAs, ctas.least);
  set(get()->maxCTAs, ctas.most);
}

}  // namespace dynamiccl
