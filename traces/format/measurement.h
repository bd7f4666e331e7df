// SPDX-License-Identifier: Apache-2.0
// What a sweep measured: times of configs on one fabric. Grammar of the file: docs/formats/measurements.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/cost_model/cost_model.h"

namespace dynamiccl {

// One cell: a collective of a size under one config, every repeat kept so that readers choose their own
// statistic and can split the repeats into halves (pick on one, value on the other).
struct Measurement {
  std::string topology;  // name, key into MeasurementFile::contexts
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;               // NCCL's total
  CollectiveConfig config;          // algorithm, protocol and channels that were really used
  bool is_default = false;          // chosen by the library itself, nothing forced
  std::vector<float> microseconds;  // per repeat: maximum over ranks

  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// The fabric a topology stands for, as the decision code will see it.
struct MeasurementContext {
  std::string topology;
  CostModelInput model;

  friend bool operator==(const MeasurementContext&, const MeasurementContext&) = default;
};

struct MeasurementFile {
  std::string library;  // "hostccl 0.1.0"
  std::string machine;  // processor, cores
  std::string command;
  std::vector<MeasurementContext> contexts;
  std::vector<Measurement> rows;

  friend bool operator==(const MeasurementFile&, const MeasurementFile&) = default;
};

}  // namespace dynamiccl
