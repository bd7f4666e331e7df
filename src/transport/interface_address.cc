// SPDX-License-Identifier: Apache-2.0
// Parses a choice of network interfaces and applies it. See interface_address.h.
#include "src/transport/interface_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <sstream>

namespace dynamiccl {
namespace {

// The first byte of loopback addresses (127.0.0.0/8).
constexpr uint32_t kLoopbackNet = 127;

// A parsed choice of interfaces: whether it began with "^" and with "=", and its names.
struct NameList {
  bool excludes = false;
  bool exact = false;
  std::vector<std::string> names;
};

NameList Parse(const std::string& choice) {
  NameList list;
  size_t at = 0;
  list.excludes = choice.starts_with("^");
  at += list.excludes ? 1 : 0;
  list.exact = choice.substr(at).starts_with("=");
  at += list.exact ? 1 : 0;
  std::istringstream words(choice.substr(at));
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) list.names.push_back(word);
  }
  return list;
}

bool Fits(const NameList& list, const std::string& wanted, const std::string& interface) {
  return list.exact ? interface == wanted : interface.starts_with(wanted);
}

std::vector<InterfaceAddress> Candidates(const NameList& list,
                                         const std::vector<InterfaceAddress>& available) {
  std::vector<InterfaceAddress> found;
  if (!list.excludes) {
    for (const std::string& name : list.names) {
      std::copy_if(available.begin(), available.end(), std::back_inserter(found),
                   [&](const InterfaceAddress& interface) { return Fits(list, name, interface.name); });
    }
    return found;
  }
  for (const InterfaceAddress& interface : available) {
    const bool left_out = std::any_of(list.names.begin(), list.names.end(), [&](const std::string& name) {
      return Fits(list, name, interface.name);
    });
    if (!left_out) found.push_back(interface);
  }
  std::stable_partition(found.begin(), found.end(), [](const InterfaceAddress& interface) {
    return interface.ipv4 >> 24 != kLoopbackNet;
  });
  return found;
}

}  // namespace

Result<uint32_t> ChooseInterface(const std::string& choice, const std::vector<InterfaceAddress>& available) {
  in_addr parsed{};
  if (::inet_pton(AF_INET, choice.c_str(), &parsed) == 1) return ntohl(parsed.s_addr);
  const auto candidates = Candidates(Parse(choice), available);
  if (!candidates.empty()) return candidates.front().ipv4;
  std::string names;
  for (const InterfaceAddress& interface : available) {
    names += std::string(names.empty() ? "" : ", ") + interface.name;
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "'{}' is neither an IPv4 address nor names an interface that is up", choice),
                  "interfaces with an IPv4 address here: " + names);
}

Result<uint32_t> AddressOfInterface(const std::string& choice) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return MakeError(ErrorKind::kUnavailable, "cannot list the network interfaces: {}", ErrnoText(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> available;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const bool usable = entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET &&
                        (entry->ifa_flags & IFF_UP) != 0;
    if (!usable) continue;
    const auto* const address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    available.push_back({entry->ifa_name, ntohl(address->sin_addr.s_addr)});
  }
  return ChooseInterface(choice, available);
}

}  // namespace dynamiccl
