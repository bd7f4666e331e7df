// SPDX-License-Identifier: Apache-2.0
// What was measured of configs: times of calls, from sweeps, and effects on training steps, from experiments
// in jobs. Grammar of the file: docs/formats/measurements.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/channel_count.h"
#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/role.h"
#include "src/cost_model/cost_model.h"

namespace dynamiccl {

// One cell of a sweep: a collective and size under one config. Every repeat is kept. So readers can choose
// their own statistic, and can pick a config on one half of the repeats and time it on the other half.
struct Measurement {
  std::string topology;  // name, key into MeasurementFile::contexts
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;               // NCCL's total
  CollectiveConfig config;          // the algorithm, protocol and channels that NCCL used
  bool is_default = false;          // chosen by the library itself, with nothing forced
  std::vector<float> microseconds;  // one for each repeat: the maximum over ranks

  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// The fabric of a topology, as the decision code sees it.
struct MeasurementContext {
  std::string topology;
  CostModelInput model;

  friend bool operator==(const MeasurementContext&, const MeasurementContext&) = default;
};

// What an experiment in a job found: by how much a config, used by some of the job's calls, changed the time
// of a training step, compared with NCCL's choice for the same calls.
struct MeasuredEffect {
  std::string topology;  // name, key into MeasurementFile::contexts
  // Bit c is set if the calls that used the config include the collective with NCCL's number c; not 0.
  uint8_t collectives = 0;
  // NCCL's total of the calls; of several sizes their mean, weighted by bytes. 0: not known.
  uint64_t bytes = 0;
  // The calls' role and phase, and the level of memory pressure. Each is unknown if it was not the same for
  // all calls.
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  MemoryPressure memory = MemoryPressure::kUnknown;
  // Share of the calls' time for which the program waits, 0 to 1.
  std::optional<double> exposed;
  // Under NCCL's choice: log2 of the time of calls over what NCCL's cost model expects, and the time of a
  // step's calls over the time of the step (above 1 where calls overlap). Either both are known, or neither
  // is.
  std::optional<double> slowness;
  std::optional<double> share;
  // The config. Its number of channels is 0 if only `channel_count` is known.
  CollectiveConfig config;
  ChannelCount channel_count = ChannelCount::kOne;
  // Natural logarithm of the step's time with the config over its time with NCCL's choice, and the standard
  // error of this number, above 0.
  double log_ratio = 0;
  double error = 0;
  uint32_t steps = 0;  // number of steps that used the config; not 0

  friend bool operator==(const MeasuredEffect&, const MeasuredEffect&) = default;
};

// One sweep, or the effects found by experiments, or both. Each topology of a row or effect has a context.
struct MeasurementFile {
  std::string library;  // "hostccl 0.1.0"
  std::string machine;  // processor and cores
  std::string command;  // the command line that made the file
  std::vector<MeasurementContext> contexts;
  std::vector<Measurement> rows;
  // Names of the hosts, separated by commas, with every number in them replaced by '#' ("nid#"); empty if
  // they are not known. The names distinguish machines with equal processors.
  std::string hosts;
  std::vector<MeasuredEffect> effects;

  friend bool operator==(const MeasurementFile&, const MeasurementFile&) = default;
};

}  // namespace dynamiccl
