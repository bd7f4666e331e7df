// SPDX-License-Identifier: Apache-2.0
// The findings of a site store as measured effects on steps, from which `dynamiccl train` learns.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/decision/site_store/site_store.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Returns all findings of `store` about configs other than NCCL's own choice. Each place becomes a topology
// without known links. It is called `fabric`, with the first digits of the place's digest and its shape
// behind the name if the store has several places. If `fabric` is empty, the name is the digest and shape.
// Findings do not say which of several sizes, roles and phases an effect comes from. Returns
// kInvalidArgument if there is no finding.
Result<MeasurementFile> EffectsInStore(const SiteStore& store, const std::string& fabric);

}  // namespace dynamiccl
