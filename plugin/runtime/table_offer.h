// SPDX-License-Identifier: Apache-2.0
// A table version that the leader's process wants all ranks of a communicator to use.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "src/decision/switching/switch_leader.h"

namespace dynamiccl {

// Made by a guard or by any thread of the leader's process (ControlServer::OfferTable); the control server's
// thread asks the ranks.
struct TableOffer {
  // A kRevocation is requested before offers with any other reason. Adoptions are requested at most once in
  // kAdoptionSpacingNs.
  SwitchReason reason = SwitchReason::kAdoption;
  bool leaves_nccl_alone = false;  // version 0: NCCL's choice for every call
  std::vector<std::byte> plan;     // else: the version's plan beside the present policy; may be empty
  // Called once with the outcome, on the control server's thread, unless the communicator ends before. After
  // a commit all ranks use the table from the boundary on. kSuperseded with version 0: no rank was asked. May
  // be empty.
  std::function<void(const SwitchOutcome&)> ended;
};

}  // namespace dynamiccl
