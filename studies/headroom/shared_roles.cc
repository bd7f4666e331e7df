// SPDX-License-Identifier: Apache-2.0
// Collects the roles and phases of every key.
#include "studies/headroom/shared_roles.h"

#include <map>
#include <set>
#include <tuple>

#include "src/collective/size_class.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// Roles, phases and bytes of one (communicator, collective, size class).
struct Key {
  std::set<Role> roles;
  std::set<Phase> phases;
  double bytes = 0;
};
using Keys = std::map<std::tuple<uint64_t, Collective, uint8_t>, Key>;

Keys KeysOf(const Trace& trace) {
  Keys keys;
  // Maps each communicator to the one rank whose calls are counted.
  std::map<uint64_t, int32_t> seen_by;
  for (const TraceSection& section : trace.sections) {
    for (const TraceCall& call : CallsOf(section).calls) {
      const IssuedCall& issued = call.issued;
      const int32_t rank = seen_by.emplace(issued.call.communicator, issued.rank).first->second;
      const bool collective = static_cast<int>(issued.call.collective) < kTunableCollectives;
      if (rank != issued.rank || !collective || issued.labelled_role == Role::kUnknown) continue;
      Key& key =
          keys[{issued.call.communicator, issued.call.collective, SizeClassOf(issued.call.bytes).index}];
      key.roles.insert(issued.labelled_role);
      key.phases.insert(issued.labelled_phase);
      key.bytes += static_cast<double>(issued.call.bytes);
    }
  }
  return keys;
}

}  // namespace

SharedRoles& SharedRoles::operator+=(const SharedRoles& other) {
  keys += other.keys;
  several_roles += other.several_roles;
  several_phases += other.several_phases;
  bytes += other.bytes;
  bytes_several_roles += other.bytes_several_roles;
  bytes_several_phases += other.bytes_several_phases;
  return *this;
}

SharedRoles SharedRolesOf(const Trace& trace) {
  SharedRoles shared;
  for (const auto& [id, key] : KeysOf(trace)) {
    const bool roles = key.roles.size() > 1, phases = key.phases.size() > 1;
    ++shared.keys;
    shared.bytes += key.bytes;
    shared.several_roles += roles;
    shared.several_phases += phases;
    if (roles) shared.bytes_several_roles += key.bytes;
    if (phases) shared.bytes_several_phases += key.bytes;
  }
  return shared;
}

}  // namespace dynamiccl
