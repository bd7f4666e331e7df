// SPDX-License-Identifier: Apache-2.0
// Tables of spellings, indexed by NCCL's numbers.
#include "src/collective/protocol.h"

#include "src/collective/spelling.h"

namespace dynamiccl {
namespace {

constexpr const char* kNames[kProtocols] = {"LL", "LL128", "Simple"};
constexpr const char* kLogNames[kProtocols] = {"LL", "LL128", "SIMPLE"};

}  // namespace

std::string_view Name(Protocol protocol) {
  const auto index = static_cast<size_t>(protocol);
  return index < kProtocols ? kNames[index] : "Undefined";
}

std::string_view LogName(Protocol protocol) {
  const auto index = static_cast<size_t>(protocol);
  return index < kProtocols ? kLogNames[index] : "UNDEFINED";
}

std::optional<Protocol> ParseProtocol(std::string_view name) {
  for (int i = 0; i < kProtocols; ++i) {
    if (EqualIgnoringCase(name, kNames[i])) return static_cast<Protocol>(i);
  }
  return std::nullopt;
}

}  // namespace dynamiccl
