// SPDX-License-Identifier: Apache-2.0
// Predicts how another release would change the calls of a user's job, and the time of its step.
#pragma once

#include <optional>
#include <vector>

#include "tools/canary/traffic.h"

namespace dynamiccl {

// True if the two choices are equal in all that is known. Releases before 2.20 do not tell the protocol, so
// an unknown protocol equals every other one.
bool SameAsFarAsKnown(const CollectiveConfig& one, const CollectiveConfig& other);

// Calls of one kind that both releases chose for.
struct ClassEffect {
  TrafficClass calls;
  CollectiveConfig before, after;
  // Microseconds of one call by the one model, on the graphs of each release; nothing where it cannot say.
  std::optional<double> us_before, us_after;

  bool changes() const { return !SameAsFarAsKnown(before, after); }
  // Returns the microseconds by which all calls of the class take longer; 0 if one release has no price.
  double added_us() const {
    return us_before && us_after ? static_cast<double>(calls.calls) * (*us_after - *us_before) : 0;
  }
};

// Microseconds of all calls by the model of one release (kModelRelease) on the graphs that each release
// found, so that no calibration of one release is held against another's.
struct ModelEffect {
  double us_before = 0;
  double us_after = 0;
  // The same times with the choices that the model itself would make on those graphs. They show the effect of
  // how each release uses the machine, apart from what it chooses.
  double best_us_before = 0;
  double best_us_after = 0;
  uint64_t calls_unpriced = 0;
  // The median step with what the model adds to its communication. Nothing where the trace has no times of
  // steps.
  std::optional<double> step_ns_after;
  // The trace tells how long the job waits for its calls. Otherwise it counts as waiting for all of them, and
  // the step's change is the largest possible.
  bool knows_waits = false;

  double ratio() const { return us_before > 0 ? us_after / us_before : 1; }
  double best_ratio() const { return best_us_before > 0 ? best_us_after / best_us_before : 1; }
};

struct TrafficEffect {
  std::vector<ClassEffect> classes;        // those that the model expects to become slower first
  uint64_t calls = 0;                      // for which both releases chose
  uint64_t calls_unknown = 0;              // for which one of them told no choice
  uint64_t calls_with_other_pair = 0;      // another algorithm or protocol
  uint64_t calls_with_other_channels = 0;  // another number of channels and nothing else
  // Shares, from 0 to 1, of the calls with another choice: of the bytes, and of the recorded time, which is
  // that of waiting where the trace knows it. Nothing without times of all calls.
  double changed_bytes = 0;
  std::optional<double> changed_time;
  bool times_are_waits = false;
  std::optional<ModelEffect> model;  // nothing without a model
  // Time of the calls that both tables price, with the later release's algorithms and protocols over the time
  // with the earlier's, by each release's own table; 1: no change. Tables do not price channel counts.
  double by_before = 1;
  double by_after = 1;
  // Microseconds of these calls by each release's own table and choices. They show what fewer adapters or
  // channels do, but also how differently the tables are calibrated.
  double own_us_before = 0;
  double own_us_after = 0;
  uint64_t calls_unpriced = 0;  // by one of the tables
};
TrafficEffect EffectOn(const Traffic& traffic, const Cell& before, const Cell& after);

// True where the job's communication takes longer by more than the model is off by, and would with the best
// choices: the release uses the machine worse.
bool IsGraveFor(const TrafficEffect& effect);
// True where the model prices all calls and none of that costs the job anything.
bool CostsNothing(const TrafficEffect& effect);

}  // namespace dynamiccl
