// SPDX-License-Identifier: Apache-2.0
// The public trace of another job that the report shows beside the demo's own.
#pragma once

#include "tools/demo/demo_session.h"

namespace dynamiccl {

// Fills result().imported from the first sample in traces/samples; nothing where the installation has none.
Status AddImportedSample(DemoSession& session);

}  // namespace dynamiccl
