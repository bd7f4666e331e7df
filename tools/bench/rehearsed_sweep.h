// SPDX-License-Identifier: Apache-2.0
// Rehearses a sweep: takes recorded times instead of calling a library. This shows what an order of measuring
// would have measured within a budget.
#pragma once

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Rehearses a sweep with the times in the file `recorded`. Each visit to a cell returns recorded repeats of
// even index, in an order that the seed decides, and begins again after the last one. The repeats of odd
// index are not used, so that they can judge the result. A visit is assumed to take VisitSeconds. The result
// holds the visited cells, with the library, machine and contexts of `recorded`.
Result<MeasurementFile> RehearseSweep(const MeasurementFile& recorded, const ChoiceOptions& options,
                                      double budget_s);

// Seconds that a rehearsal would take if it used every repeat of even index once.
double RehearsalSeconds(const MeasurementFile& recorded);

}  // namespace dynamiccl
