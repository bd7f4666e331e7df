// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a communicator exchange what NCCL offers them: at the leader that attested it.
#pragma once

#include "plugin/runtime/process_runtime.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {

// Of a communicator, which is kept. `attested`: empty where its ranks have attested; else what they would
// have, which then goes with every mask. Null when its ranks cannot meet.
std::unique_ptr<MaskAgreement> NewMaskAgreement(ProcessRuntime& runtime,
                                                std::shared_ptr<const Communicator> communicator,
                                                std::optional<AttestedValues> attested = std::nullopt);

// What NCCL offers on every machine it runs on, whatever its links: for ranks that cannot exchange masks.
ConfigMask OfferedEverywhere(Collective collective);

}  // namespace dynamiccl
