// SPDX-License-Identifier: Apache-2.0
// Lets the ranks of a communicator exchange what NCCL offers them. They exchange it through the leader that
// attested the communicator. A rank may use a table entry only if NCCL offers that configuration to all ranks
// (src/decision/mask_agreement.h).
#pragma once

#include <memory>
#include <optional>

#include "plugin/runtime/communicator.h"
#include "plugin/runtime/rendezvous_points.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {

// Returns the agreement for one communicator, which keeps the communicator alive. `attested` is empty if the
// ranks have attested already. Otherwise it holds the values to attest, which then travel with every mask.
// Null if the ranks cannot meet. One tuner session owns the result, and one thread at a time uses it.
// `rendezvous` outlives the result.
std::unique_ptr<MaskAgreement> NewMaskAgreement(RendezvousPoints& rendezvous,
                                                std::shared_ptr<const Communicator> communicator,
                                                std::optional<AttestedValues> attested = std::nullopt);

// Returns what NCCL offers on every machine, whatever its links. Used for ranks that cannot exchange masks.
ConfigMask OfferedEverywhere(Collective collective);

}  // namespace dynamiccl
