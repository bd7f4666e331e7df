// SPDX-License-Identifier: Apache-2.0
// Chooses the config of a simulated call as DynamICCL would in a job, and remembers the answers.
#include "tools/simulate/config_on_system.h"

#include <map>

#include "src/policy/config_inference.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/library_pick.h"

namespace dynamiccl {
namespace {

CollectiveConfig ByPolicy(const System& system, const Policy& policy, const CallOnSystem& call,
                          const ConfigMask& known) {
  const ConfigQuestion question = QuestionOfJobs({call.collective, call.bytes, known});
  return ChooseConfig(policy, LibraryView(system, call.n_ranks, call.n_nodes), question).config;
}

CollectiveConfig Decide(const System& system, const Choosers& choosers, const CallOnSystem& call) {
  if (static_cast<int>(call.collective) >= kTunableCollectives || call.n_ranks < 2) return kLeaveNcclAlone;
  const ConfigMask known = KnownPaths(system) & NcclConfigs(call.collective);
  const OverrideRule* const rule = choosers.rules == nullptr
                                       ? nullptr
                                       : choosers.rules->Match({.collective = call.collective,
                                                                .bytes = call.bytes,
                                                                .n_nodes = call.n_nodes,
                                                                .n_ranks = call.n_ranks,
                                                                .role = call.role,
                                                                .phase = call.phase,
                                                                .stage = call.stage});
  CollectiveConfig config = kLeaveNcclAlone;
  if (rule != nullptr)
    config = rule->config;
  else if (choosers.policy != nullptr)
    config = ByPolicy(system, *choosers.policy, call, known);
  if (!config.leaves_nccl_alone() && known.test(ConfigIndex(config.algorithm, config.protocol)))
    return config;
  return LibraryPick(system, call.collective, call.bytes, call.n_ranks, call.n_nodes);
}

// Decides each distinct call once, since traces repeat their calls. The cache is shared by copies of the
// function and is not safe for several threads.
ConfigOnSystem Remembered(ConfigOnSystem decide) {
  auto known = std::make_shared<std::map<CallOnSystem, CollectiveConfig>>();
  return [known = std::move(known), decide = std::move(decide)](const CallOnSystem& call) {
    const auto found = known->find(call);
    return found != known->end() ? found->second : known->emplace(call, decide(call)).first->second;
  };
}

}  // namespace

ConfigOnSystem DecidedOn(const System& system, Choosers choosers) {
  return Remembered([&system, choosers = std::move(choosers)](const CallOnSystem& call) {
    return Decide(system, choosers, call);
  });
}

ConfigOnSystem CheapestOn(const System& system) {
  return Remembered([&system](const CallOnSystem& call) {
    if (static_cast<int>(call.collective) >= kTunableCollectives || call.n_ranks < 2) return kLeaveNcclAlone;
    return CollectiveTimes(system, call.n_ranks, call.n_nodes).Cheapest(call.collective, call.bytes);
  });
}

}  // namespace dynamiccl
