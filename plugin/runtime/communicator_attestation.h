// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a communicator agree on what decides their calls, asked from inside the tuner's init,
// where waiting is safe. Each rank attests what it has loaded; only where all are equal are tables used.
#pragma once

#include <string>

#include "plugin/runtime/communicator.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/meeting_places.h"

namespace dynamiccl {

// How far the ranks of a communicator are known to decide alike.
enum class Standing {
  // They are not: NCCL's choice stays.
  kNotAttested,
  // They have attested, and can exchange what NCCL offers them.
  kAttested,
  // They can exchange it, and attest with each of these exchanges.
  kByCalls,
  // It has one rank.
  kAlone,
  // The user vouches for ranks that cannot meet.
  kVouchedFor,
};

// What the ranks of a communicator attest of it and of themselves. `constants` names the cost model's.
AttestedValues AttestedOf(const LoadedChoices& choices, const Communicator& communicator,
                          const std::string& constants);

// Attests a communicator, on the thread of the tuner's init. `communicator` is null when it cannot be told
// which one NCCL is initialising. Blocks until the ranks have agreed or not: while all live, at most the
// attestation's time-out, and never without a bound. Logs once why not, and gives up later meetings after a
// time-out. `launched_rank` is this process's rank as the launcher says it, for the log.
Standing AttestCommunicator(const LoadedChoices& choices, MeetingPlaces& meetings, int launched_rank,
                            const Communicator* communicator, const std::string& constants);

// Tells ranks that attest this communicator inside NCCL's init that this rank does not, because there it
// cannot be told from others. One short attempt; it blocks for half a second at most.
void DeclineToAttest(const LoadedChoices& choices, const MeetingPlaces& meetings,
                     const Communicator& communicator);

// The standing of one of several communicators that NCCL initialised in a group together, found by its first
// call. Nobody waits then: what ranks attest goes with every exchange of masks (mask_meetings.h).
Standing StandingByCalls(const LoadedChoices& choices, const MeetingPlaces& meetings,
                         const Communicator& communicator);

}  // namespace dynamiccl
