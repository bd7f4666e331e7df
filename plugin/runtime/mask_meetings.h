// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a communicator exchange what NCCL offers them: at the leader that attested it. A rank
// may use an entry of its table only if NCCL offers that configuration to all ranks
// (src/decision/mask_agreement.h).
#pragma once

#include <memory>
#include <optional>

#include "plugin/runtime/communicator.h"
#include "plugin/runtime/meeting_places.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {

// The agreement of one communicator, which it keeps alive. `attested` is empty where its ranks have attested;
// else it holds what they would have, which then goes with every mask. Null when the ranks cannot meet. The
// result belongs to one tuner session and is used by one thread at a time; `meetings` outlives it.
std::unique_ptr<MaskAgreement> NewMaskAgreement(MeetingPlaces& meetings,
                                                std::shared_ptr<const Communicator> communicator,
                                                std::optional<AttestedValues> attested = std::nullopt);

// What NCCL offers on every machine it runs on, whatever its links: for ranks that cannot exchange masks.
ConfigMask OfferedEverywhere(Collective collective);

}  // namespace dynamiccl
