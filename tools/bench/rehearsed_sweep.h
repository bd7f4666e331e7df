// SPDX-License-Identifier: Apache-2.0
// A sweep over a record instead of a library: what an order of visits would have measured within a budget.
#pragma once

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Visits are given the recorded repeats of even index, in an order drawn by the seed, as often as there are
// any: the odd ones never leave the record and can judge. A visit takes VisitSeconds. The result holds what
// was visited; its library, machine and contexts are the record's.
Result<MeasurementFile> RehearseSweep(const MeasurementFile& recorded, const ChoiceOptions& options,
                                      double budget_s);

// Seconds that visits of all repeats of even index take.
double RehearsalSeconds(const MeasurementFile& recorded);

}  // namespace dynamiccl
