// SPDX-License-Identifier: Apache-2.0
// A sweep over a record instead of a library. It shows what an order of visits would have measured within a
// budget.
#pragma once

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Visits return the recorded repeats of even index, in an order drawn by the seed, cyclically. The odd
// repeats never leave the record and can serve as judge. A visit costs VisitSeconds. The result holds the
// visited cells; library, machine and contexts are the record's.
Result<MeasurementFile> RehearseSweep(const MeasurementFile& recorded, const ChoiceOptions& options,
                                      double budget_s);

// Seconds that visits of all repeats of even index would take.
double RehearsalSeconds(const MeasurementFile& recorded);

}  // namespace dynamiccl
