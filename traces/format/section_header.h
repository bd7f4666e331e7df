// SPDX-License-Identifier: Apache-2.0
// A section's description as the header that stands before its records on disk, and back.
#pragma once

#include "traces/format/trace.h"

namespace dynamiccl {

// The header of the section when finished, all but content_hash. Texts that are too long are cut.
TraceHeader HeaderOf(const TraceSection& section);
// The section without its records. `header` may hold anything: nothing beyond it is read.
TraceSection SectionOf(const TraceHeader& header);

}  // namespace dynamiccl
