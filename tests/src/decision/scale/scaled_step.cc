// SPDX-License-Identifier: Apache-2.0
// Simulates the step once with NCCL's picks, and once for each config of each key.
#include "tests/src/decision/scale/scaled_step.h"

#include <algorithm>
#include <map>

#include "src/policy/probe_candidates.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/event_simulation.h"
#include "src/simulator/library_pick.h"
#include "tools/simulate/framework_step.h"

namespace dynamiccl::testing {
namespace {

// Each rank has one sequence. FSDP2 shards 6.7 billion parameters in bfloat16; DDP replicates 1.6 billion in
// float32.
constexpr const char* kShardedModel = "llama";
constexpr const char* kCopiedModel = "gpt:layers=48,hidden=1600";

const Accelerator* AcceleratorOf(std::string_view system) {
  if (system.ends_with("a100")) return FindAccelerator("a100");
  return FindAccelerator(system.ends_with("h100") ? "h100" : "v100");
}

// The described systems leave out two limits that NCCL's own model has. A channel carries its part of what a
// node's links carry, so fewer channels are slower for large calls. And LL has a cap over all channels;
// without it LL would look best for large calls at thousands of ranks.
System WithLimits(System system, int n_ranks) {
  const double ll_gbps = NcclHopperConstants(system.NodesFor(n_ranks)).ll_max_bandwidth;
  for (auto& row : system.paths) {
    for (PathCosts& path : row) path.channel_gbps = path.intra_gbps / system.max_channels;
    PathCosts& ll = row[static_cast<size_t>(Protocol::kLL)];
    ll.intra_gbps = std::min(ll.intra_gbps, ll_gbps);
    ll.inter_gbps = std::min(ll.inter_gbps, ll_gbps);
  }
  return system;
}

// Returns the bytes on the wire for a byte of payload: LL sends a flag with every word, LL128 one in sixteen.
double WireShare(Protocol protocol) {
  if (protocol == Protocol::kLL) return 2;
  return protocol == Protocol::kLL128 ? 128.0 / 120 : 1;
}

Result<FrameworkJob> GenerateJob(const ScaledCase& scaled, const System& system) {
  FrameworkStep step;
  step.framework = scaled.framework;
  const bool shards = scaled.framework == "fsdp2";
  DYNAMICCL_TRY(step.model, ParseModel(shards ? kShardedModel : kCopiedModel));
  step.world.data = scaled.ranks;
  if (shards) step.settings = {{"param_dtype", "bfloat16"}, {"reduce_dtype", "bfloat16"}};
  step.accelerator = *AcceleratorOf(scaled.system->name);
  step.network_gbps = scaled.system->network_gbps;
  return JobOfFramework(step, system);
}

// Holds the times of a key's calls in one simulated step.
struct KeyTimes {
  double step_ns = 0;     // The whole step.
  double running_ns = 0;  // All calls of the key.
  double stalled_ns = 0;  // The part of running_ns that rank 0 waits for.
};

class StepSimulation {
 public:
  StepSimulation(const ScaledCase& scaled, System system)
      : system_(std::move(system)),
        ranks_(scaled.ranks),
        nodes_(system_.NodesFor(ranks_)),
        demands_(system_) {}

  Status Prepare(const ScaledCase& scaled) {
    DYNAMICCL_TRY(FrameworkJob generated, GenerateJob(scaled, system_));
    job_ = std::move(generated.job);
    job_.loads = scaled.loads;
    labels_ = std::move(generated.labels);
    for (const CollectiveLabel& label : labels_) {
      const TableKey key{label.collective, SizeClassOf(label.bytes), label.role};
      const auto [known, is_new] = numbers_.try_emplace(KeyCode(key), keys_.size());
      if (is_new) keys_.push_back(key);
      places_.push_back(known->second);
    }
    return {};
  }

  // Returns the times with these configs, by key. A key without one uses NCCL's pick. A config without a
  // number of channels uses all.
  Result<std::vector<KeyTimes>> Run(const std::map<size_t, CollectiveConfig>& configs) {
    auto& collectives = job_.programs[0].collectives;
    for (size_t i = 0; i < collectives.size(); ++i) {
      const auto given = configs.find(places_[i]);
      DYNAMICCL_TRY(collectives[i].demand, DemandOf(i, given != configs.end() ? given->second : PickOf(i)));
    }
    DYNAMICCL_TRY(const SimulationResult result, Simulate(job_));
    std::vector<KeyTimes> times(keys_.size(), {static_cast<double>(result.observed[0].finished_ns), 0, 0});
    for (size_t i = 0; i < places_.size(); ++i) {
      const CollectiveTiming& call = result.observed[0].collectives[i];
      times[places_[i]].running_ns += static_cast<double>(call.ended_ns - call.started_ns);
      times[places_[i]].stalled_ns += static_cast<double>(call.stalled_ns);
    }
    return times;
  }

  std::vector<ProbeCandidate> Candidates(const TableKey& key) const {
    const uint64_t bytes = LowerBound(key.size_class);
    const CollectiveConfig pick = LibraryPick(system_, key.collective, bytes, ranks_, nodes_);
    return UnlikeFirst(nullptr, LibraryView(system_, ranks_, nodes_), {key.collective, bytes, Allowed(key)},
                       {pick, true});
  }
  ConfigMask Allowed(const TableKey& key) const { return KnownPaths(system_) & NcclConfigs(key.collective); }
  bool Has(const TableKey& key, const CollectiveConfig& config) const {
    return TermsOf(key.collective, config.algorithm, ranks_, nodes_).volume > 0;
  }
  int max_channels() const { return system_.max_channels; }
  const std::vector<TableKey>& keys() const { return keys_; }
  const std::vector<size_t>& places() const { return places_; }

 private:
  // The simulator counts payload, but under a load of other jobs the bytes on the wire matter.
  Result<TransferDemand> DemandOf(size_t call, const CollectiveConfig& config) {
    const bool grouped = job_.programs[0].collectives[call].demand.latency_ns == 0;
    DYNAMICCL_TRY(TransferDemand demand,
                  demands_.Of(labels_[call].collective, labels_[call].bytes, config, ranks_, nodes_));
    if (grouped) demand.latency_ns = 0;
    demand.port_bytes *= WireShare(config.protocol);
    demand.network_bytes *= WireShare(config.protocol);
    return demand;
  }
  CollectiveConfig PickOf(size_t call) const {
    CollectiveConfig pick =
        LibraryPick(system_, labels_[call].collective, labels_[call].bytes, ranks_, nodes_);
    pick.channels = 0;
    return pick;
  }

  System system_;
  int ranks_;
  int nodes_;
  SystemDemands demands_;
  dynamiccl::SimulatedJob job_;
  std::vector<CollectiveLabel> labels_;
  std::map<uint32_t, size_t> numbers_;  // Numbers of keys_, by KeyCode.
  std::vector<TableKey> keys_;
  std::vector<size_t> places_;
};

// A key with its configs, and the config with which the step is shortest.
struct JudgedKey {
  TrueKey key;
  CollectiveConfig best, best_tried;
  double best_ns = 0, best_tried_ns = 0;
};

Result<JudgedKey> Judge(StepSimulation& simulation, size_t number, const KeyTimes& nccl) {
  const TableKey& table_key = simulation.keys()[number];
  const auto calls = std::count(simulation.places().begin(), simulation.places().end(), number);
  JudgedKey judged{
      {table_key, nccl.running_ns / static_cast<double>(calls), nccl.stalled_ns / nccl.running_ns, {}},
      kLeaveNcclAlone,
      kLeaveNcclAlone,
      nccl.step_ns,
      nccl.step_ns};
  const auto better = [](double ns, const CollectiveConfig& config, double& best_ns, CollectiveConfig& best) {
    if (ns < best_ns) std::tie(best_ns, best) = std::pair(ns, config);
  };
  for (const ProbeCandidate& candidate : simulation.Candidates(table_key)) {
    DYNAMICCL_TRY(const auto times, simulation.Run({{number, candidate.config}}));
    const KeyTimes& with = times[number];
    const double waited_ns = nccl.stalled_ns + with.step_ns - nccl.step_ns;
    judged.key.configs.push_back({candidate.config, candidate.predicted, with.running_ns / nccl.running_ns,
                                  waited_ns / with.running_ns, candidate.of_nccls_pair});
    better(with.step_ns, candidate.config, judged.best_tried_ns, judged.best_tried);
  }
  for (const CollectiveConfig& config :
       EnumerateConfigs(simulation.Allowed(table_key), simulation.max_channels())) {
    // A pair of algorithm and protocol without a price here would be simulated as the cheapest pair.
    if (config.channels != simulation.max_channels() || !simulation.Has(table_key, config)) continue;
    DYNAMICCL_TRY(const auto times, simulation.Run({{number, config}}));
    better(times[number].step_ns, config, judged.best_ns, judged.best);
  }
  return judged;
}

}  // namespace

Result<ScaledStep> StepAtScale(const ScaledCase& scaled) {
  StepSimulation simulation(scaled, WithLimits(SystemOf(*scaled.system), scaled.ranks));
  DYNAMICCL_CHECK_OK(simulation.Prepare(scaled));
  DYNAMICCL_TRY(const std::vector<KeyTimes> nccl, simulation.Run({}));
  ScaledStep step{.places = simulation.places(), .compute_ns = nccl[0].step_ns, .nccl_ns = nccl[0].step_ns};
  std::map<size_t, CollectiveConfig> best, best_tried;
  for (size_t i = 0; i < nccl.size(); ++i) {
    DYNAMICCL_TRY(const JudgedKey judged, Judge(simulation, i, nccl[i]));
    if (!judged.best.leaves_nccl_alone()) best[i] = judged.best;
    if (!judged.best_tried.leaves_nccl_alone()) best_tried[i] = judged.best_tried;
    step.compute_ns -= nccl[i].stalled_ns;
    step.keys.push_back(judged.key);
  }
  DYNAMICCL_TRY(const auto with_best, simulation.Run(best));
  DYNAMICCL_TRY(const auto with_best_tried, simulation.Run(best_tried));
  step.best_ns = with_best[0].step_ns;
  step.best_tried_ns = with_best_tried[0].step_ns;
  return step;
}

}  // namespace dynamiccl::testing
