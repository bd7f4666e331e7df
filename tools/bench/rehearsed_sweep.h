// SPDX-License-Identifier: Apache-2.0
// Runs a sweep over recorded times instead of a library. It shows what an order of visits would have measured
// within a budget.
#pragma once

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Rehearses a sweep over the file `recorded`. Visits return the recorded repeats of even index, in an order
// that the seed decides, and begin again after the last. The repeats of odd index are not used, so they can
// judge the result. A visit costs VisitSeconds. The result holds the visited cells, with the library, machine
// and contexts of `recorded`.
Result<MeasurementFile> RehearseSweep(const MeasurementFile& recorded, const ChoiceOptions& options,
                                      double budget_s);

// Seconds that visits of all repeats of even index would take.
double RehearsalSeconds(const MeasurementFile& recorded);

}  // namespace dynamiccl
