// SPDX-License-Identifier: Apache-2.0
// A call's times against what is usual of its key: the only input of all detectors but the shipped one, which
// keeps its own references of the same kind.
#pragma once

#include <map>
#include <optional>

#include "agents/timing/timing_run.h"
#include "src/decision/guard/time_reference.h"

namespace dynamiccl::agents {

struct CallResidual {
  double transfer = 0;       // logs off the key's median
  double transfer_unit = 1;  // spread of the key
  double skew = 0;           // of log(1 + skew / transfer)
  double skew_unit = 1;
};

class CallResiduals {
 public:
  // None while the key is being learnt.
  std::optional<CallResidual> Take(const TimedCall& call);
  void Forget() { keys_.clear(); }

 private:
  struct Key {
    TimeReference transfer;
    TimeReference skew;
  };
  std::map<uint64_t, Key> keys_;
};

}  // namespace dynamiccl::agents
