// SPDX-License-Identifier: Apache-2.0
// Finds out whether the ranks of a communicator agree on everything that decides their calls. It runs inside
// the tuner's init, where waiting is safe. Each rank attests what it has loaded; tables are used only if all
// ranks attest the same.
#pragma once

#include <string>

#include "plugin/runtime/communicator.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/rendezvous_points.h"

namespace dynamiccl {

// States whether the ranks of a communicator are known to decide alike.
enum class AttestationState {
  // It is not known whether the ranks decide alike: NCCL's choice stays.
  kNotAttested,
  // The ranks have attested, and can exchange what NCCL offers them.
  kAttested,
  // The ranks can exchange what NCCL offers them, and attest with each of these exchanges.
  kDeferred,
  // The communicator has one rank.
  kSingleRank,
  // The ranks cannot meet, but the user vouches for them.
  kVouchedFor,
};

// Returns what a rank attests about itself and the communicator. `constants` names the constants of the cost
// model.
AttestedValues AttestedOf(const LoadedChoices& choices, const Communicator& communicator,
                          const std::string& constants);

// Attests a communicator, on the thread of the tuner's init. `communicator` is null if it is not known which
// one NCCL is initialising. Blocks until there is a verdict: while all ranks live, at most the attestation's
// time-out, and never without a limit. Logs once why the ranks do not agree, and after a time-out takes part
// in no later vote. `launched_rank` is this process's rank by the launcher, for the log.
AttestationState AttestCommunicator(const LoadedChoices& choices, RendezvousPoints& rendezvous,
                                    int launched_rank, const Communicator* communicator,
                                    const std::string& constants);

// Tells the ranks that attest this communicator inside NCCL's init that this rank does not attest, because it
// cannot identify the communicator inside the init. Makes one attempt and blocks for half a second at most.
void DeclineToAttest(const LoadedChoices& choices, const RendezvousPoints& rendezvous,
                     const Communicator& communicator);

// Returns the state of a communicator that NCCL initialised together with others in a group, and that its
// first call has identified. In this case nobody waits: the attested values travel with every exchange of
// masks (mask_votes.h).
AttestationState DeferAttestation(const LoadedChoices& choices, const RendezvousPoints& rendezvous,
                                  const Communicator& communicator);

}  // namespace dynamiccl
