// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/phase_promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/src/decision/guard/promise_jobs.h"

namespace dynamiccl::testing {
namespace {

constexpr int kSteps = 1000;
constexpr int kLayers = 8;
constexpr int64_t kComputedNs = 20'000'000;
constexpr double kStepNoise = 0.03;
constexpr double kGatherNs = 1'500'000;
constexpr size_t kForward = 0, kBackward = 1, kReduced = 2;

constexpr CollectiveConfig kManyChannels{Algorithm::kRing, Protocol::kSimple, 16};
constexpr CollectiveConfig kOneChannel{Algorithm::kRing, Protocol::kSimple, 1};
constexpr CollectiveConfig kTree{Algorithm::kTree, Protocol::kSimple, 8};
constexpr CollectiveConfig kShort{Algorithm::kRing, Protocol::kLL, 8};

// Returns the gathers of one phase: for each config its time over that of NCCL's choice, and the part of this
// time by which the step becomes longer. Beside computation many channels take its cores, so the step becomes
// longer by more than the gather takes. One channel takes long and leaves the cores alone.
TrueKey GathersOf(Role role, double exposed, double exposed_of_many, double exposed_of_one) {
  TrueKey key;
  key.key = {Collective::kAllGather, {60}, role};
  key.nccl_ns = kGatherNs;
  key.exposed = exposed;
  key.configs = {{kManyChannels, 1.0, 0.6, exposed_of_many},
                 {kShort, 1.1, 1.2, exposed},
                 {kOneChannel, 1.2, 1.5, exposed_of_one}};
  return key;
}

std::vector<TrueKey> Keys() {
  TrueKey reduced;
  reduced.key = {Collective::kReduceScatter, {64}, Role::kGradientReduce};
  reduced.nccl_ns = kGatherNs;
  reduced.exposed = 0.3;
  reduced.configs = {{kTree, 1.1, 1.1, 0.3}, {kShort, 1.2, 1.3, 0.3}};
  return {GathersOf(Role::kParameterGather, 1, 1, 1), GathersOf(Role::kBackwardGather, 0.5, 1.4, 0.1),
          reduced};
}

// Returns the calls of a step like FSDP2's: gathers of all layers forward, then for each layer backward a
// gather and a reduction.
std::vector<size_t> Places() {
  std::vector<size_t> places(kLayers, kForward);
  for (int layer = 0; layer < kLayers; ++layer) places.insert(places.end(), {kBackward, kReduced});
  return places;
}

// Returns by how many nanoseconds the gathers of one step lengthen it with these two configs.
double GatheredNs(const std::vector<TrueKey>& keys, const CollectiveConfig& forward,
                  const CollectiveConfig& backward) {
  const std::array<CollectiveConfig, 2> used{forward, backward};
  double ns = 0;
  for (const size_t key : {kForward, kBackward}) {
    double of_call = keys[key].exposed;
    for (const TrueKey::Config& config : keys[key].configs) {
      if (config.config == used[key]) of_call = config.ratio * config.exposed;
    }
    ns += kLayers * keys[key].nccl_ns * of_call;
  }
  return ns;
}

struct Found {
  Spread of_both;    // The gain at the end, divided by the gain of both configs.
  Spread of_single;  // The gain at the end, divided by the gain of the best single config.
  int jobs = 0;      // Jobs that end with both configs.
};

void RunJob(JobOptions options, Found& found) {
  options.given = Keys();
  options.places = Places();
  options.step_ns = kComputedNs;
  options.step_noise = kStepNoise;
  options.device_times = true;
  options.timing_cost = 0;
  SimulatedJob job(options);
  job.RunSteps(kSteps);
  const CollectiveConfig forward = job.ChoiceOf(kForward), backward = job.ChoiceOf(kBackward);
  found.jobs += forward == kManyChannels && backward == kOneChannel ? 1 : 0;
  const double nccl = GatheredNs(options.given, kLeaveNcclAlone, kLeaveNcclAlone);
  const double both = GatheredNs(options.given, kManyChannels, kOneChannel);
  const double single = std::min({nccl, GatheredNs(options.given, kManyChannels, kManyChannels),
                                  GatheredNs(options.given, kOneChannel, kOneChannel)});
  const double chosen = GatheredNs(options.given, forward, backward);
  found.of_both.Add((nccl - chosen) / (nccl - both));
  found.of_single.Add((nccl - chosen) / (nccl - single));
}

}  // namespace

std::vector<Promise> TwoPhases(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("two-phases", timing, options, [&](Noise noise, Promise& promise) {
    Found found;
    for (int i = 0; i < options.seeds; ++i) RunJob(JobOf(options, timing, noise, i), found);
    promise.figures = fmt::format(
        "after {} steps {} jobs use one config forward and another backward; their choices gain {:.0f} % of "
        "what both gain (median), {:.0f} % at least, and {:.1f} times what the best single config gains",
        kSteps, found.jobs, 100 * found.of_both.At(0.5), 100 * found.of_both.At(0), found.of_single.At(0.5));
    promise.kept = found.of_both.At(0.5) >= 0.9 && found.of_single.At(0.5) > 1.5;
  });
}

}  // namespace dynamiccl::testing
