// SPDX-License-Identifier: Apache-2.0
// Runs of calls with inserted changes. The changes are inserted into recorded quiet runs, whose noise is
// kept, and into runs with modelled noise.
#pragma once

#include <random>

#include "studies/agents/timing/timing_run.h"

namespace dynamiccl::agents {

// The change. A degraded link makes transfers `factor` times as long. Congestion does so on average, with
// bursts and pauses of four calls on average. A straggler arrives late, by (factor - 1) times the run's
// median transfer.
struct PutIn {
  TimingEvent event = TimingEvent::kQuiet;
  double factor = 1;
  // Number of calls before the change.
  size_t before = 0;
  // Share of the keys that a degraded or congested fabric slows.
  double share_of_keys = 1;
};

// Returns at most `calls` consecutive calls of the run, from a random one on, with the change.
TimingRun Resampled(const TimingRun& quiet, const PutIn& put, size_t calls, std::mt19937_64& random);

// A modelled job of ten keys in a step of 40 calls. It has normal noise of 8 % and noise with memory (AR(1),
// coefficient 0.9, deviation 4 %). 2 % of the calls take up to 4.5 times as long, and arrivals differ by 5 %
// of a transfer. Detectors of this kind are usually judged on such noise, but no recorded machine is as
// quiet.
TimingRun Modelled(const PutIn& put, size_t calls, std::mt19937_64& random);

// The same job on `ranks` ranks, whose leader learns the times of all ranks of a call. Each rank arrives
// independently: within 5 % of a transfer, and in one call of 400 up to a transfer late. A kernel lasts from
// its own arrival to the end of the transfer, which begins with the last arrival. A straggler is one rank
// that is always late, by (factor - 1) times the median transfer.
TimingRun ModelledOfRanks(int ranks, const PutIn& put, size_t calls, std::mt19937_64& random);

}  // namespace dynamiccl::agents
