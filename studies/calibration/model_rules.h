// SPDX-License-Identifier: Apache-2.0
// The calibrated default in a job: what a fitted model picks, as override rules.
#pragma once

#include <string>

#include "studies/calibration/fitted_model.h"

namespace dynamiccl {

// Rules for the CSV of docs/formats/override_rules.md: for each collective that the sweep measured on the
// model's topology, what the model picks among the configs measured there, size class by size class from 256
// bytes to 1 GiB; the first and last rule reach to the ends. Empty text after the columns where nothing was
// measured.
std::string RulesOfModel(const MeasurementFile& sweep, const FittedModel& model);

}  // namespace dynamiccl
