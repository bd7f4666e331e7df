// SPDX-License-Identifier: Apache-2.0
// Computes the bytes of model states. Each stage divides one more state by the number of ranks.
#include "zero_workloads/estimate/model_states.h"

namespace dynamiccl::zero {

ModelStates StatesOf(double parameters, const StateBytes& bytes, int stage, int64_t ranks) {
  const auto shared = [&](int from_stage) { return stage >= from_stage ? static_cast<double>(ranks) : 1.0; };
  return {parameters * bytes.parameter / shared(3), parameters * bytes.gradient / shared(2),
          parameters * bytes.optimizer / shared(1)};
}

double MostParameters(double device_bytes, const StateBytes& bytes, int stage, int64_t ranks) {
  return device_bytes / StatesOf(1, bytes, stage, ranks).total();
}

double CommunicationVolume(int stage) {
  return stage == 3 ? 3 : 2;
}

}  // namespace dynamiccl::zero
