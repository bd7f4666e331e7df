// SPDX-License-Identifier: Apache-2.0
// Predicts how another release would change the calls of a user's job, and the time of its step.
#pragma once

#include <optional>
#include <vector>

#include "tools/canary/traffic.h"

namespace dynamiccl {

// Returns whether two choices agree in all parts that are known. NCCL before 2.20 does not report the
// protocol, so an unknown protocol counts as equal to any other.
bool SameAsFarAsKnown(const CollectiveConfig& one, const CollectiveConfig& other);

// The calls of one collective and size class, with the choice of each release.
struct ClassEffect {
  TrafficClass calls;
  CollectiveConfig before, after;
  // Microseconds of one call by the cost model of kModelRelease, on the graphs that each release found.
  // Nothing where the model cannot price the call.
  std::optional<double> us_before, us_after;

  bool changes() const { return !SameAsFarAsKnown(before, after); }
  // Returns by how many microseconds all calls of the class together become slower; 0 if one of the prices is
  // missing.
  double added_us() const {
    return us_before && us_after ? static_cast<double>(calls.calls) * (*us_after - *us_before) : 0;
  }
};

// Microseconds of all calls of the job, before and after the change of the release. The cost model of one
// release (kModelRelease) prices both, on the graphs that each release found, because the calibrations of two
// releases cannot be compared.
struct ModelEffect {
  double us_before = 0;
  double us_after = 0;
  // Microseconds of the calls with the configs that the model itself finds cheapest on those graphs. They
  // show how well a release uses the machine, independent of the configs that the release chooses.
  double best_us_before = 0;
  double best_us_after = 0;
  uint64_t calls_unpriced = 0;
  // Predicted time of the median step: the recorded time plus what the model adds to the communication.
  // Nothing where the trace has no step times.
  std::optional<double> step_ns_after;
  // True: the trace tells how long the job waits for its calls. False: the job is assumed to wait for every
  // call, so step_ns_after has the largest possible change.
  bool knows_waits = false;

  double ratio() const { return us_before > 0 ? us_after / us_before : 1; }
  double best_ratio() const { return best_us_before > 0 ? best_us_after / best_us_before : 1; }
};

struct TrafficEffect {
  std::vector<ClassEffect> classes;        // first those that the model expects to become slower
  uint64_t calls = 0;                      // for which both releases chose
  uint64_t calls_unknown = 0;              // for which a release reported no choice
  uint64_t calls_with_other_pair = 0;      // another algorithm or protocol
  uint64_t calls_with_other_channels = 0;  // another number of channels and nothing else
  // The calls whose choice changes, as a share of the bytes of all calls and as a share of the recorded time
  // of all calls; both from 0 to 1. If times_are_waits is true, the time is that in which the job waited for
  // its calls. The share of the time is missing if some calls were not timed.
  double changed_bytes = 0;
  std::optional<double> changed_time;
  bool times_are_waits = false;
  std::optional<ModelEffect> model;  // nothing without a model
  // The predicted time with the later release's algorithms and protocols, divided by that with the earlier
  // release's; 1: no change. `by_before` uses the earlier release's cost table, `by_after` the later
  // release's. Only calls that both tables price count. The tables do not depend on the number of channels.
  double by_before = 1;
  double by_after = 1;
  // Predicted microseconds of the same calls. Each release's own cost table prices that release's choices.
  // The difference shows the effect of fewer adapters or channels, but also that the tables are calibrated
  // differently.
  double own_us_before = 0;
  double own_us_after = 0;
  uint64_t calls_unpriced = 0;  // calls that one of the tables cannot price
};
TrafficEffect EffectOn(const Traffic& traffic, const Cell& before, const Cell& after);

// True if the release uses the machine worse: the job's communication becomes slower by more than the error
// of the cost model, and would even with the cheapest choices.
bool IsGraveFor(const TrafficEffect& effect);
// True if the model can price all calls and predicts that the job's calls take no longer than before, both
// with the release's choices and with the cheapest ones.
bool CostsNothing(const TrafficEffect& effect);

}  // namespace dynamiccl
