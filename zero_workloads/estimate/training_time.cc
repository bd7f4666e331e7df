// SPDX-License-Identifier: Apache-2.0
// Divides the operations of a run by the operations that its devices do in a second.
#include "zero_workloads/estimate/training_time.h"

namespace dynamiccl::zero {

double OperationsOfParameter(bool recomputes) {
  return recomputes ? 8 : 6;
}

double TrainingSeconds(const TrainingRun& run) {
  const double operations = OperationsOfParameter(run.recomputes) * run.parameters * run.tokens;
  return operations / (run.devices * run.operations_a_second);
}

}  // namespace dynamiccl::zero
