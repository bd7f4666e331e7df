// SPDX-License-Identifier: Apache-2.0
// A call's times compared with what is usual for its key. It is the only input of all detectors except the
// shipped one, which keeps references of the same kind itself.
#pragma once

#include <map>
#include <optional>

#include "src/decision/guard/time_reference.h"
#include "studies/agents/timing/timing_run.h"

namespace dynamiccl::agents {

// How far one call is off, in natural logarithms.
struct CallResidual {
  // The transfer time, relative to the key's median.
  double transfer = 0;
  // The key's usual spread of `transfer`.
  double transfer_unit = 1;
  // log(1 + skew / transfer), relative to the key's median.
  double skew = 0;
  // The key's usual spread of `skew`.
  double skew_unit = 1;
};

// The references of all keys of one job. A detector owns one and feeds it calls in order.
class CallResiduals {
 public:
  // Returns the call's residual, or nothing while the key's reference is still being learned. Then updates
  // the reference with this call.
  std::optional<CallResidual> Take(const TimedCall& call);
  // Starts all references anew, as after a change.
  void Forget() { keys_.clear(); }

 private:
  // The references of one key.
  struct Key {
    TimeReference transfer;
    TimeReference skew;
  };
  std::map<uint64_t, Key> keys_;
};

}  // namespace dynamiccl::agents
