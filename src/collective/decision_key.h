// SPDX-License-Identifier: Apache-2.0
// All that a decision may depend on; every field is equal on all ranks. There is no room for a label or a
// local time.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/role.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

struct DecisionKey {
  uint64_t communicator = 0;
  Collective collective = Collective::kAllReduce;
  SizeClass size_class;
  Role role = Role::kUnknown;                       // recognised
  Phase phase = Phase::kUnknown;                    // recognised
  Criticality criticality = Criticality::kUnknown;  // through a table version only
  Regime regime = Regime::kNormal;                  // through a table version only

  friend bool operator==(const DecisionKey&, const DecisionKey&) = default;
};

}  // namespace dynamiccl
