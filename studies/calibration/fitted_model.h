// SPDX-License-Identifier: Apache-2.0
// The calibrated default: NCCL's cost model with constants fitted to a sweep, one topology at a time. It is a
// stronger baseline than the two-point calibration, and it still uses only the model.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// A topology with its fitted constants.
struct FittedModel {
  // The topology, with the fitted constants.
  MeasurementContext context;
  // Root mean square of log(model / measured), before and after the fit.
  double error_before = 0;
  double error_after = 0;
};

// Minimises the squared logarithm of (model / median of the even repeats) by coordinate descent, over every
// latency and bandwidth of the model. It is deterministic. Topologies without rows keep their constants.
std::vector<FittedModel> FitModels(const MeasurementFile& file);

// The config that the model with these constants picks among `allowed`, channels included.
CollectiveConfig ModelsChoice(const CostModelInput& model, Collective collective, uint64_t bytes,
                              const ConfigMask& allowed);

// Returns the calibrated default for a job, as override rules: the CSV of docs/formats/override_rules.md. The
// rules cover each collective that the sweep measured on the model's topology. They give the model's choice
// among the configs measured there, size class by size class from 256 bytes to 1 GiB. The first rule also
// covers all smaller sizes, and the last rule all larger ones. If nothing was measured, there is no text
// after the columns.
std::string RulesOfModel(const MeasurementFile& sweep, const FittedModel& model);

}  // namespace dynamiccl
