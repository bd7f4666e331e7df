// SPDX-License-Identifier: Apache-2.0
// The models of noise, and how a change is applied to finished runs.
#include "studies/agents/timing/simulated_timing.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/statistics.h"

namespace dynamiccl::agents {
namespace {

// Mean length of a burst or a pause of congestion, in calls.
constexpr double kMeanBurst = 4;

// Returns a random share of the run's keys. Their number is rounded up.
std::set<uint64_t> SlowedKeys(const TimingRun& run, double share, std::mt19937_64& random) {
  std::set<uint64_t> all;
  for (const TimedCall& call : run.calls) all.insert(call.key);
  std::vector<uint64_t> keys(all.begin(), all.end());
  std::shuffle(keys.begin(), keys.end(), random);
  const auto count = static_cast<size_t>(std::ceil(share * static_cast<double>(keys.size())));
  return {keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(count, keys.size()))};
}

double MedianTransfer(const TimingRun& run) {
  std::vector<double> transfers;
  for (const TimedCall& call : run.calls) transfers.push_back(call.transfer_ns);
  return MedianInPlace(transfers);
}

// Replaces the skews by those of independently arriving ranks. Rank 0 is late from the change on.
void Arrive(int ranks, double late_ns, TimingRun& run, std::mt19937_64& random) {
  // The share of a transfer by which arrivals differ, and the share of calls that stall.
  constexpr double kSkew = 0.05, kStalls = 1.0 / 400;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (size_t i = 0; i < run.calls.size(); ++i) {
    double first = 0, last = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double stall = uniform(random) < kStalls ? uniform(random) : 0;
      double at = (kSkew * normal(random) + stall) * run.calls[i].transfer_ns;
      if (rank == 0 && i >= run.changed) at += late_ns;
      first = rank == 0 ? at : std::min(first, at);
      last = rank == 0 ? at : std::max(last, at);
    }
    // The last rank waits for nobody, so the least of the kernels' times is the transfer.
    run.calls[i].skew_ns = last - first;
  }
}

// Applies the change to the run, from call `put.before` on.
void Put(const PutIn& put, TimingRun& run, std::mt19937_64& random) {
  run.event = put.event;
  run.factor = put.factor;
  run.changed = put.event == TimingEvent::kQuiet ? run.calls.size() : put.before;
  const std::set<uint64_t> slowed = SlowedKeys(run, put.share_of_keys, random);
  const double late_ns = (put.factor - 1) * MedianTransfer(run);
  bool burst = true;
  for (size_t i = run.changed; i < run.calls.size(); ++i) {
    TimedCall& call = run.calls[i];
    if (std::uniform_real_distribution(0.0, 1.0)(random) < 1 / kMeanBurst) burst = !burst;
    if (put.event == TimingEvent::kStraggler) call.skew_ns += late_ns;
    if (!slowed.contains(call.key)) continue;
    if (put.event == TimingEvent::kDegraded) call.transfer_ns *= put.factor;
    if (put.event == TimingEvent::kCongested && burst) call.transfer_ns *= 1 + 2 * (put.factor - 1);
  }
}

}  // namespace

TimingRun Resampled(const TimingRun& quiet, const PutIn& put, size_t calls, std::mt19937_64& random) {
  TimingRun run = quiet;
  const size_t most = std::min(calls, quiet.calls.size());
  const size_t begin = random() % (quiet.calls.size() - most + 1);
  run.calls.assign(quiet.calls.begin() + static_cast<std::ptrdiff_t>(begin),
                   quiet.calls.begin() + static_cast<std::ptrdiff_t>(begin + most));
  Put(put, run, random);
  return run;
}

TimingRun Modelled(const PutIn& put, size_t calls, std::mt19937_64& random) {
  // Number of keys of the job, and of calls in its step.
  constexpr size_t kKeys = 10, kStep = 40;
  constexpr double kMemory = 0.9, kMemoryDeviation = 0.04, kNoise = 0.08, kSkew = 0.05;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<uint64_t> step(kStep);
  for (size_t i = 0; i < kStep; ++i) step[i] = 1 + i % kKeys;
  std::shuffle(step.begin(), step.end(), random);
  std::vector<double> usual_ns(kKeys + 1);
  for (double& ns : usual_ns) ns = 1e5 * std::exp(3 * uniform(random));
  TimingRun run;
  run.fabric = "modelled";
  double memory = 0;
  int64_t now_ns = 1;
  for (size_t i = 0; i < calls; ++i) {
    memory = kMemory * memory + kMemoryDeviation * std::sqrt(1 - kMemory * kMemory) * normal(random);
    const double tail = uniform(random) < 0.02 ? 1.5 * uniform(random) : 0;
    const uint64_t key = step[i % kStep];
    const double transfer = usual_ns[key] * std::exp(memory + kNoise * normal(random) + tail);
    run.calls.push_back({key, now_ns, transfer, kSkew * std::abs(normal(random)) * usual_ns[key]});
    now_ns += static_cast<int64_t>(transfer) + 100'000;
  }
  Put(put, run, random);
  return run;
}

TimingRun ModelledOfRanks(int ranks, const PutIn& put, size_t calls, std::mt19937_64& random) {
  TimingRun run = Modelled(put, calls, random);
  run.ranks = ranks;
  const bool late = put.event == TimingEvent::kStraggler;
  Arrive(ranks, late ? (put.factor - 1) * MedianTransfer(run) : 0, run, random);
  return run;
}

}  // namespace dynamiccl::agents
