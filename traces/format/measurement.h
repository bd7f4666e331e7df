// SPDX-License-Identifier: Apache-2.0
// The results of a sweep: times of configs on one fabric. Grammar of the file: docs/formats/measurements.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
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

// One sweep. Each topology of a row has a context.
struct MeasurementFile {
  std::string library;  // "hostccl 0.1.0"
  std::string machine;  // processor and cores
  std::string command;  // the command line that made it
  std::vector<MeasurementContext> contexts;
  std::vector<Measurement> rows;
  // Names of the hosts, separated by commas, with every number in them replaced by '#' ("nid#"); empty if
  // they are not known. The names distinguish machines with equal processors.
  std::string hosts;

  friend bool operator==(const MeasurementFile&, const MeasurementFile&) = default;
};

}  // namespace dynamiccl
