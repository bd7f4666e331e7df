// SPDX-License-Identifier: Apache-2.0
// The jobs that promises are tested on, and the figures that are gathered over these jobs.
#pragma once

#include <utility>
#include <vector>

#include "src/base/statistics.h"
#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// The cost of timing on a GPU, as a share of a call. Writing the time stamps of a collective cost 4 to 13 %
// of it.
inline constexpr double kTimingCost = 0.04;

inline JobOptions JobOf(const PromiseOptions& options, Timing timing, Noise noise, int i) {
  JobOptions job;
  job.seed = options.first_seed + static_cast<uint64_t>(i);
  job.noise = noise;
  job.timing = timing;
  job.keys = options.keys;
  job.calls_per_step = 4 * options.keys;
  job.timing_cost = timing == Timing::kAll ? 0 : kTimingCost;
  return job;
}

// A figure that is gathered over keys and jobs.
class Spread {
 public:
  void Add(double value) { values_.push_back(value); }
  double At(double share) { return QuantileInPlace(values_, share); }
  double most() { return At(1); }
  size_t count() const { return values_.size(); }

 private:
  std::vector<double> values_;
};

template <class RunOne>
std::vector<Promise> ForEachNoise(const char* name, Timing timing, const PromiseOptions& options,
                                  RunOne run_one) {
  std::vector<Promise> promises;
  for (const Noise noise : kNoises) {
    Promise promise{name, timing, Name(noise), options.seeds, {}, true};
    run_one(noise, promise);
    promises.push_back(std::move(promise));
  }
  return promises;
}

}  // namespace dynamiccl::testing
