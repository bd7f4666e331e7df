// SPDX-License-Identifier: Apache-2.0
// Runs of calls whose changes are put in: into recorded quiet runs, whose noise they keep, and into a model
// of noise.
#pragma once

#include <random>

#include "agents/timing/timing_run.h"

namespace dynamiccl::agents {

// What is put in: a degraded link makes transfers factor times as long; congestion (bursts and pauses of four
// calls on average) the mean of them; a straggler comes (factor - 1) times the run's median transfer late.
struct PutIn {
  TimingEvent event = TimingEvent::kQuiet;
  double factor = 1;
  size_t before = 0;         // calls before it
  double share_of_keys = 1;  // that a degraded or congested fabric slows
};

// `calls` calls of the run from a random one on, with the event.
TimingRun Resampled(const TimingRun& quiet, const PutIn& put, size_t calls, std::mt19937_64& random);

// A job of ten keys in a step of 40 calls, with normal noise of 8 % and memory (AR(1), 0.9, 4 %), 2 % of the
// calls up to 4.5 times as long, and arrivals 5 % of a transfer apart. The noise of facts that detectors of
// this kind are judged by; no recorded machine is as quiet.
TimingRun Modelled(const PutIn& put, size_t calls, std::mt19937_64& random);

// The same job on so many ranks, of which the leader hears what a call's ranks took together: each rank
// arrives by itself, 5 % of a transfer apart, one call in 400 up to a transfer late, and a kernel lasts from
// its own arrival to the end of the transfer, which begins with the last one. A straggler is one rank that
// always is (factor - 1) times the median transfer late.
TimingRun ModelledOfRanks(int ranks, const PutIn& put, size_t calls, std::mt19937_64& random);

}  // namespace dynamiccl::agents
