// SPDX-License-Identifier: Apache-2.0
// Walks both releases' choices size by size and merges neighbours with the same change:
//
// 1. Worlds (machine, nodes, ranks per node) of both releases are paired; a world that one release lacks is
//    left out.
// 2. In a world, each collective's calls are paired by their bytes, in the order of the first release's list.
// 3. A pair in which algorithm, protocol or channels differ is a change. It extends the range before it when
//    both releases still use the same algorithm and protocol as there, and begins a new range otherwise. A
//    size without a change ends the range.
#include "tools/doctor/nccl_comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "src/base/nearest_name.h"

namespace dynamiccl {
namespace {

// Returns the known name to suggest for a wrong one. For the beginning of a name ("2.32", "pcie") it is the
// last known name with this beginning.
std::string Nearest(const std::string& name, const std::vector<std::string>& known) {
  const auto begun = std::find_if(known.rbegin(), known.rend(),
                                  [&](const std::string& one) { return one.starts_with(name); });
  if (begun != known.rend()) return *begun;
  return NearestName(name, std::vector<std::string_view>(known.begin(), known.end()));
}

tl::unexpected<Error> Unknown(const char* what, const std::string& name,
                              const std::vector<std::string>& known) {
  return WithHint(MakeError(ErrorKind::kNotFound, "no {} '{}' in the data", what, name),
                  fmt::format("did you mean {}? It has {}", Nearest(name, known), fmt::join(known, ", ")));
}

Status CheckRelease(const NcclChoices& choices, const std::string& release) {
  if (choices.releases.contains(release)) return {};
  return Unknown("release of NCCL", release, ReleasesInOrder(choices));
}

Status CheckMachine(const NcclChoices& choices, const std::string& machine) {
  if (machine.empty() || choices.machines.contains(machine)) return {};
  std::vector<std::string> known;
  for (const auto& [name, description] : choices.machines) known.push_back(name);
  return Unknown("machine", machine, known);
}

ChosenRange StartRange(const NcclCalls& calls, const NcclCall& call) {
  const NcclPair pair{call.choice.algorithm, call.choice.protocol};
  const float cost = calls.Cost(call, pair);
  return {
      .pair = pair, .channels = {call.choice.channels, call.choice.channels}, .microseconds = {cost, cost}};
}

// Extends a range by the choice at the next size.
void Widen(const ChosenRange& one, ChosenRange* range) {
  range->channels.Widen(one.channels.least);
  range->microseconds.Widen(one.microseconds.least);
}

// Compares the sizes of one collective on one machine, with one number of nodes and ranks, and appends the
// ranges of sizes with changed choices. CompareWorld owns the object for one call.
class CollectiveComparison {
 public:
  CollectiveComparison(const NcclWorld& world, Collective collective, NcclComparison* out)
      : world_(world), collective_(collective), out_(out) {}

  void Compare(const NcclCalls& before, const NcclCalls& after) {
    for (const NcclCall& call : before.calls) {
      const auto other = std::find_if(after.calls.begin(), after.calls.end(),
                                      [&](const NcclCall& one) { return one.bytes == call.bytes; });
      if (other == after.calls.end()) continue;
      ++out_->calls;
      Add({world_,
           collective_,
           {call.bytes, call.bytes},
           StartRange(before, call),
           StartRange(after, *other)});
    }
  }

 private:
  void Add(const ChangedRange& one) {
    const bool other_channels = one.before.channels.least != one.after.channels.least;
    out_->other_pairs += one.other_pair() ? 1 : 0;
    out_->other_channels += !one.other_pair() && other_channels ? 1 : 0;
    if (!one.other_pair() && !other_channels) {
      open_ = false;
      return;
    }
    ChangedRange* last = open_ ? &out_->ranges.back() : nullptr;
    if (last != nullptr && last->before.pair == one.before.pair && last->after.pair == one.after.pair) {
      last->bytes.Widen(one.bytes.least);
      Widen(one.before, &last->before);
      Widen(one.after, &last->after);
      return;
    }
    out_->ranges.push_back(one);
    open_ = true;
  }

  const NcclWorld& world_;
  Collective collective_;
  NcclComparison* out_;
  // True: the last range ends at the previous size, so the next change may extend it.
  bool open_ = false;
};

void CompareWorld(const NcclWorld& world, const NcclCommunicator& before, const NcclCommunicator& after,
                  NcclComparison* out) {
  out->worlds.push_back(world);
  for (int c = kTunableCollectives - 1; c >= 0; --c) {  // AllReduce first
    const auto index = static_cast<size_t>(c);
    CollectiveComparison(world, static_cast<Collective>(c), out)
        .Compare(before.collectives[index], after.collectives[index]);
  }
}

// Lists what else the user can ask for: the releases that the data has for the machine, and the machines for
// which it has both releases.
std::string ReleasesAndMachines(const NcclChoices& choices, const std::string& machine,
                                const std::string& before, const std::string& after) {
  std::set<std::string> releases, machines_before, machines;
  for (const auto& [release, its] : choices.releases) {
    for (const auto& [world, communicator] : its.worlds) {
      if (world.machine == machine) releases.insert(release);
      if (release == before) machines_before.insert(world.machine);
      if (release == after) machines.insert(world.machine);
    }
  }
  std::erase_if(machines, [&](const std::string& one) { return !machines_before.contains(one); });
  return fmt::format("{}both releases are there for: {}",
                     releases.empty() ? "" : fmt::format("{} has {}; ", machine, fmt::join(releases, ", ")),
                     fmt::join(machines, ", "));
}

}  // namespace

Result<NcclComparison> CompareReleases(const NcclChoices& choices, const std::string& before,
                                       const std::string& after, const std::string& machine) {
  DYNAMICCL_CHECK_OK(CheckRelease(choices, before));
  DYNAMICCL_CHECK_OK(CheckRelease(choices, after));
  DYNAMICCL_CHECK_OK(CheckMachine(choices, machine));
  NcclComparison comparison{.before = before, .after = after};
  const auto& others = choices.releases.at(after).worlds;
  for (const auto& [world, communicator] : choices.releases.at(before).worlds) {
    const auto other = others.find(world);
    if (other == others.end() || (!machine.empty() && world.machine != machine)) continue;
    CompareWorld(world, communicator, other->second, &comparison);
  }
  if (comparison.worlds.empty()) {
    return WithHint(MakeError(ErrorKind::kNotFound, "the data has no world of both {} and {}{}{}", before,
                              after, machine.empty() ? "" : " on ", machine),
                    ReleasesAndMachines(choices, machine, before, after));
  }
  return comparison;
}

}  // namespace dynamiccl
